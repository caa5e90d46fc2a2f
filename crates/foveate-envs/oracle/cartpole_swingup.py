"""CartPoleSwingUpHarder with random actions for many episodes, from its published equations.

Written with Python's and NumPy's scalars where the original has them, because `x ** 2` is the C library's pow and
not a multiplication.
"""

import math

import numpy as np

import wire

SEEDS = [0, 1, 2, 3, 5, 17, 10**9 + 7, 2**32 + 5, 2**63 + 11]
EPISODES = 40
GRAVITY, POLE_MASS, TOTAL_MASS, POLE, FORCE, STEP, FRICTION, HALF = 9.82, 0.5, 1.0, 0.6, 10.0, 0.01, 0.1, 2.4
MASS_LENGTH = POLE_MASS * POLE


def start(stream):
    x, v, theta, w = (stream.rand(4) * 2 - 1) * [HALF, 10.0, np.pi / 2.0, 10.0]
    return x, v, np.pi + theta, w


def observation(x, v, theta, w):
    return [x, v, np.cos(theta), np.sin(theta), w]


def step(x, v, theta, w, action):
    force = min(max(action, -1.0), 1.0) * FORCE
    s, c = math.sin(theta), math.cos(theta)
    push = (-2 * MASS_LENGTH * (w**2) * s + 3 * POLE_MASS * GRAVITY * s * c + 4 * force - 4 * FRICTION * v) / (
        4 * TOTAL_MASS - 3 * POLE_MASS * c**2
    )
    turn = (-3 * MASS_LENGTH * (w**2) * s * c + 6 * TOTAL_MASS * GRAVITY * s + 6 * (force - FRICTION * v) * c) / (
        4 * POLE * TOTAL_MASS - 3 * MASS_LENGTH * c**2
    )
    x, theta = x + v * STEP, theta + w * STEP
    v, w = v + push * STEP, w + turn * STEP
    reward = (np.cos(theta) + 1.0) / 2.0 * np.cos((x / HALF) * (np.pi / 2.0))
    return (x, v, theta, w), reward


def drive(state, draws):
    """A crude balance, so that not every episode ends at once; and much noise."""
    x, v, theta, w = state
    angle = (theta + np.pi) % (2 * np.pi) - np.pi
    if abs(angle) < 0.6:
        wish = 4.0 * angle + 0.8 * w + 0.4 * x + 0.6 * v
    else:
        wish = -0.8 * x - 0.4 * v + 0.2 * np.sign(w * np.cos(theta))
    return float(wish + draws.normal() * 0.3)


for seed in SEEDS:
    stream = wire.old_gym_stream(seed)
    draws = np.random.default_rng(seed)
    for episode in range(EPISODES):
        state = start(stream)
        # A seed has 64 bits, which one number of the pipe cannot carry.
        wire.numbers(1, seed >> 32 if episode == 0 else -1, seed & 0xFFFFFFFF, state, observation(*state))
        for t in range(1000):
            action = drive(state, draws)
            state, reward = step(*state, action)
            ended, stopped = abs(state[0]) > HALF, t + 1 >= 1000
            wire.numbers(action, state, observation(*state), reward, ended, stopped)
            if ended or stopped:
                break
wire.numbers(0)
wire.done()
