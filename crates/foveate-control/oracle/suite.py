"""Seeded episodes of dm_control's suite with random actions, on a pipe.

Usage: suite.py numbers EPISODES, or suite.py pictures STEPS EVERY HEIGHTxWIDTH

Little-endian f64, the version of MuJoCo as its number first; pictures are bytes, `[height, width, 3]`.

* numbers: for each task and each episode: 1, the seed, the first observation, and for each step the action, the observation
  and the reward; at the end 0.
* pictures: for each task, the picture of camera 0 after the reset of seed 5; for each step the action, and after every EVERY
  steps the picture.
"""

import os
import sys

MODE, *ARGUMENTS = sys.argv[1:]
os.environ.setdefault("MUJOCO_GL", "egl" if MODE == "pictures" else "disable")
_pipe = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
os.dup2(2, 1)

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from dm_control.mujoco.wrapper.mjbindings import sizes  # noqa: E402

# There is no dm_control for MuJoCo 4.0: the last one indexes arrays that it lacks, which no task of the suite uses.
for _name, _kind in (("mjmodel", mujoco.MjModel), ("mjdata", mujoco.MjData)):
    for _field in [field for field in sizes.array_sizes[_name] if not hasattr(_kind, field)]:
        del sizes.array_sizes[_name][_field]

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


def flat(step):
    return np.concatenate([np.ravel(part) for part in step.observation.values()])


def numbers(episodes):
    for domain, task in TASKS:
        draws = np.random.RandomState(99)
        for seed in range(episodes):
            # Every third world plays a second episode, which continues its random stream.
            env = suite.load(domain, task, task_kwargs={"random": seed * 7919})
            count = env.action_spec().shape[0]
            for again in range(2 if seed % 3 == 0 else 1):
                step = env.reset()
                send(1, -1 if again else seed * 7919, flat(step))
                held = draws.uniform(-1, 1, count)
                for t in range(1000):
                    if t % (1 + seed % 5) == 0:
                        # Beyond the range at times: the reward of cartpole sees that.
                        held = draws.uniform(-1.2, 1.2, count)
                    step = env.step(held)
                    send(held, flat(step), step.reward)
                assert step.last() and step.discount == 1.0
        send(0)


def pictures(steps, every, height, width):
    for domain, task in TASKS:
        draws = np.random.RandomState(99)
        env = suite.load(domain, task, task_kwargs={"random": 5})
        show = lambda: _pipe.write(np.ascontiguousarray(env.physics.render(height, width, camera_id=0)).tobytes())  # noqa: E731, B023
        env.reset()
        show()
        for t in range(1, steps + 1):
            action = draws.uniform(-1, 1, env.action_spec().shape[0])
            env.step(action)
            send(action)
            if t % every == 0:
                show()


send(mujoco.mj_version())
if MODE == "numbers":
    numbers(int(ARGUMENTS[0]))
else:
    pictures(int(ARGUMENTS[0]), int(ARGUMENTS[1]), *(int(side) for side in ARGUMENTS[2].split("x")))
_pipe.flush()
