"""CPU time of a step of CartPoleSwingUpHarder in Python, written as environments of Gymnasium are.

usage: cartpole.py FOLDER

Drives episodes with a crude balance and noise, and writes FOLDER/actions_SEED.jsonl for each, one action a line, a
list of one number. Then plays the actions again for the clock, in three ways: through `gymnasium.make`, with the
wrappers that it adds; the same class without them; and a class with Python's own floats, functions and constants instead
of NumPy's scalars and attributes, the fastest that plain Python gets. The returns of all must be equal to the bit.

Prints one JSON object: the number of steps; per way the CPU seconds of its `step` calls alone, one thread, the fastest of
PASSES; and for every episode its seed, its return, and the sum of the numbers that it showed last.
"""

import hashlib
import json
import math
import os
import pathlib
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import gymnasium  # noqa: E402  (after the thread counts)
import numpy as np  # noqa: E402

EPISODES = 100
PASSES = 5
GRAVITY, POLE_MASS, TOTAL_MASS, POLE, FORCE, STEP, FRICTION, HALF = 9.82, 0.5, 1.0, 0.6, 10.0, 0.01, 0.1, 2.4
MASS_LENGTH = POLE_MASS * POLE


def stream(seed):
    """The random numbers of gym until 0.20."""
    left = int.from_bytes(hashlib.sha512(str(seed).encode()).digest()[:8], "little")
    words = []
    while left:
        left, word = divmod(left, 2**32)
        words.append(word)
    numbers = np.random.RandomState()
    numbers.seed(words)
    return numbers


class SwingUp(gymnasium.Env):
    """As environments of Gymnasium usually are: constants are attributes, the state has NumPy's scalars."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (5,), np.float32)

    def __init__(self):
        self.gravity, self.pole_mass, self.total_mass, self.pole = GRAVITY, POLE_MASS, TOTAL_MASS, POLE
        self.mass_length, self.force_mag, self.dt, self.friction, self.half = MASS_LENGTH, FORCE, STEP, FRICTION, HALF

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        x, v, theta, w = (stream(seed).rand(4) * 2 - 1) * [HALF, 10.0, np.pi / 2.0, 10.0]
        self.state = (x, v, np.pi + theta, w)
        return self.observation(), {}

    def observation(self):
        x, v, theta, w = self.state
        return np.array([x, v, np.cos(theta), np.sin(theta), w], dtype=np.float32)

    def step(self, action):
        x, v, theta, w = self.state
        force = np.clip(action, -1.0, 1.0)[0] * self.force_mag
        s, c = math.sin(theta), math.cos(theta)
        push = (
            -2 * self.mass_length * (w**2) * s
            + 3 * self.pole_mass * self.gravity * s * c
            + 4 * force
            - 4 * self.friction * v
        ) / (4 * self.total_mass - 3 * self.pole_mass * c**2)
        turn = (
            -3 * self.mass_length * (w**2) * s * c
            + 6 * self.total_mass * self.gravity * s
            + 6 * (force - self.friction * v) * c
        ) / (4 * self.pole * self.total_mass - 3 * self.mass_length * c**2)
        x, theta = x + v * self.dt, theta + w * self.dt
        v, w = v + push * self.dt, w + turn * self.dt
        self.state = (x, v, theta, w)
        reward = (np.cos(theta) + 1.0) / 2.0 * np.cos((x / self.half) * (np.pi / 2.0))
        return self.observation(), reward, bool(x < -self.half or x > self.half), False, {}


class PlainSwingUp(SwingUp):
    """Python's floats and functions; the observation alone is NumPy's."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.state = tuple(map(float, self.state))
        return observation, info

    def step(self, action):
        x, v, theta, w = self.state
        force = min(max(float(action[0]), -1.0), 1.0) * FORCE
        s, c = math.sin(theta), math.cos(theta)
        w2, c2 = w**2, c**2
        push = (-2 * MASS_LENGTH * w2 * s + 3 * POLE_MASS * GRAVITY * s * c + 4 * force - 4 * FRICTION * v) / (
            4 * TOTAL_MASS - 3 * POLE_MASS * c2
        )
        turn = (-3 * MASS_LENGTH * w2 * s * c + 6 * TOTAL_MASS * GRAVITY * s + 6 * (force - FRICTION * v) * c) / (
            4 * POLE * TOTAL_MASS - 3 * MASS_LENGTH * c2
        )
        x, theta = x + v * STEP, theta + w * STEP
        v, w = v + push * STEP, w + turn * STEP
        self.state = (x, v, theta, w)
        c = math.cos(theta)
        reward = (c + 1.0) / 2.0 * math.cos((x / HALF) * (math.pi / 2.0))
        return np.array((x, v, c, math.sin(theta), w), np.float32), reward, x < -HALF or x > HALF, False, {}


def made():
    gymnasium.register("SwingUp-v0", SwingUp, max_episode_steps=1000)
    return gymnasium.make("SwingUp-v0")


def balance(env, draws):
    """Keeps the pole up when it is, and swings it otherwise; much noise."""
    x, v, theta, w = env.state
    angle = (theta + np.pi) % (2 * np.pi) - np.pi
    if abs(angle) < 0.6:
        wish = 4.0 * angle + 0.8 * w + 0.4 * x + 0.6 * v
    else:
        wish = -0.8 * x - 0.4 * v + 0.2 * np.sign(w * np.cos(theta))
    return np.array([wish + draws.normal() * 0.3])


def drive(seed):
    """The actions of an episode."""
    env, draws, actions = SwingUp(), np.random.default_rng(seed), []
    env.reset(seed=seed)
    for _ in range(1000):
        actions.append(balance(env, draws))
        if env.step(actions[-1])[2]:
            break
    return actions


def replay(env, seed, actions):
    """Plays recorded actions; gives the return, the sum of the last numbers shown, and the CPU seconds of all steps."""
    env.reset(seed=seed)
    total = 0.0
    start = time.process_time_ns()
    for action in actions:
        seen, reward, _, _, _ = env.step(action)
        total += reward
    cpu = time.process_time_ns() - start
    return float(total), float(sum(map(float, seen))), cpu / 1e9


def main():
    folder = pathlib.Path(sys.argv[1])
    drives = [(seed, drive(seed)) for seed in range(EPISODES)]
    for seed, actions in drives:
        lines = "".join(f"{json.dumps([float(a) for a in action])}\n" for action in actions)
        (folder / f"actions_{seed}.jsonl").write_text(lines)
    ways = {"gymnasium": made(), "class": SwingUp(), "plain": PlainSwingUp()}
    best, episodes = dict.fromkeys(ways, math.inf), None
    # One pass of each after the other, so that a disturbance does not hit one alone.
    for _ in range(PASSES):
        for way, env in ways.items():
            results = [replay(env, seed, actions) for seed, actions in drives]
            best[way] = min(best[way], sum(cpu for _, _, cpu in results))
            found = [{"seed": seed, "return": r, "seen": s} for (seed, _), (r, s, _) in zip(drives, results)]
            assert episodes in (None, found), f"{way}: other episodes than before"
            episodes = found
    steps = sum(len(actions) for _, actions in drives)
    print(json.dumps({"steps": steps, **{f"{way}_cpu_s": cpu for way, cpu in best.items()}, "episodes": episodes}))


if __name__ == "__main__":
    main()
