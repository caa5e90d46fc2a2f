"""An episode of AntBulletEnv-v0: for each step a line with the evaluation's reward, one with the training's, both with flag
and observation, numbers as bits. The package builds its scene in the first reset, so that one is of another seed."""

import struct
import sys

import gymnasium
import numpy
import pybullet_envs_gymnasium  # registers the environment

seed, actions = int(sys.argv[1]), numpy.array(sys.argv[2].split(), float).reshape(-1, 8)
env = gymnasium.make("AntBulletEnv-v0", disable_env_checker=True)
env.reset(seed=0)
env.reset(seed=seed)
for action in actions:
    observation, reward, terminated, _, _ = env.step(action.astype(numpy.float32))
    alive, progress, electricity, limits, feet = env.unwrapped.rewards
    numbers = " ".join(format(int(x), "08x") for x in observation.view(numpy.uint32))
    for value in (reward, max(0.0, progress + electricity + limits + feet)):
        print("step %016x %d %s" % (struct.unpack("<Q", struct.pack("<d", value))[0], terminated, numbers))
    if terminated:
        break
