"""What every oracle script shares: a binary pipe to the test, and Gymnasium's CarRacing with old Gym's seeding.

Little-endian f64 throughout; a text is its length and its UTF-8 bytes, each as one number.
"""

import hashlib
import os
import sys

import numpy as np

# Standard output belongs to the test alone; whatever a library prints goes to standard error.
_pipe = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
os.dup2(2, 1)
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

from gymnasium.envs.box2d.car_racing import CarRacing  # noqa: E402


def numbers(*values):
    """Sends numbers, or arrays of numbers."""
    for value in values:
        _pipe.write(np.asarray(value, dtype="<f8").tobytes())


def text(value):
    """Sends a short text."""
    data = value.encode()
    numbers(len(data), list(data))


def raw(data):
    """Sends bytes as they are."""
    _pipe.write(data)


def done():
    """Sends what is left."""
    _pipe.flush()


def old_gym_stream(seed):
    """gym.utils.seeding.np_random(seed) of gym 0.15 to 0.19."""
    number = int.from_bytes(hashlib.sha512(str(seed).encode()).digest()[:8], "little")
    words = []
    while number > 0 or not words:
        number, word = divmod(number, 2**32)
        words.append(word)
    stream = np.random.RandomState()
    stream.seed(words)
    return stream


class World(CarRacing):
    """CarRacing whose construction draws from seed 0, and whose picture can be left out."""

    def __init__(self, picture=False, **options):
        self._np_random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0)))
        super().__init__(**options)
        if not picture:
            self._render = lambda mode: None

    def reset_old(self, seed=None, **options):
        """Resets with old Gym's stream, started afresh when there is a seed."""
        if seed is not None:
            self._np_random = old_gym_stream(seed)
        return self.reset(**options)


if sys.byteorder != "little":
    sys.exit("the oracle writes little-endian numbers only")
