"""An episode of PongNoFrameskip-v4: for each action a line of reward, end and the digest of four pictures, which OpenCV and
NumPy make of the emulator's screens."""

import hashlib
import sys

import ale_py
import cv2
import gymnasium
import numpy

gymnasium.register_envs(ale_py)
seed, idle, choices = int(sys.argv[1]), int(sys.argv[2]), [int(word) for word in sys.argv[3].split()]
env = gymnasium.make("PongNoFrameskip-v4", disable_env_checker=True)
stack = []


def show(screen, reward, over):
    grey = cv2.cvtColor(screen, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (84, 84), interpolation=cv2.INTER_AREA)
    small[:10] = 0
    stack[:] = (stack + [small])[-4:] if stack else [small] * 4
    print(repr(float(reward)), int(over), hashlib.sha256(numpy.stack(stack).tobytes()).hexdigest())


screen, _ = env.reset(seed=seed)
for _ in range(idle):
    screen, _, _, _, _ = env.step(0)
show(screen, 0, False)
for choice in choices:
    screens, total = [], 0.0
    for _ in range(4):
        screen, reward, terminated, truncated, _ = env.step(choice)
        screens.append(screen)
        total += reward
    assert not terminated and not truncated
    show(numpy.maximum(screens[-1], screens[-2]), total, False)
