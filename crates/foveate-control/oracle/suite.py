"""Seeded episodes of dm_control's suite with random actions, as little-endian f64 on a pipe.

For each task, its number, and for each episode the seed, the first observation, and for each step the action, the
observation and the reward.
"""

import os
import sys

os.environ.setdefault("MUJOCO_GL", "disable")
_pipe = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
os.dup2(2, 1)

import numpy as np  # noqa: E402
from dm_control import suite  # noqa: E402

TASKS = [
    ("cheetah", "run"),
    ("walker", "walk"),
    ("cartpole", "swingup"),
    ("ball_in_cup", "catch"),
    ("reacher", "easy"),
    ("finger", "spin"),
]


def send(*values):
    for value in values:
        _pipe.write(np.asarray(value, dtype="<f8").tobytes())


def numbers(step):
    return np.concatenate([np.ravel(part) for part in step.observation.values()])


EPISODES = int(sys.argv[1])
for domain, task in TASKS:
    draws = np.random.RandomState(99)
    for seed in range(EPISODES):
        # Every third world plays a second episode, which continues its random stream.
        env = suite.load(domain, task, task_kwargs={"random": seed * 7919})
        count = env.action_spec().shape[0]
        for again in range(2 if seed % 3 == 0 else 1):
            step = env.reset()
            send(1, -1 if again else seed * 7919, numbers(step))
            held = draws.uniform(-1, 1, count)
            for t in range(1000):
                if t % (1 + seed % 5) == 0:
                    # Beyond the range at times: the reward of cartpole sees that.
                    held = draws.uniform(-1.2, 1.2, count)
                step = env.step(held)
                send(held, numbers(step), step.reward)
            assert step.last() and step.discount == 1.0
    send(0)
_pipe.flush()
