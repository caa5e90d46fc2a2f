"""`gymnasium.make_vec`: the native batch beside Gymnasium's `SyncVectorEnv` of the same worlds."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import foveate

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def same(mine, other, where):
    if isinstance(other, dict):
        assert list(mine) == list(other), where
        for key in other:
            same(mine[key], other[key], f"{where}, {key}")
    elif isinstance(other, tuple):
        assert len(mine) == len(other), where
        for part, (a, b) in enumerate(zip(mine, other)):
            same(a, b, f"{where}, part {part}")
    elif isinstance(other, np.ndarray) and other.dtype == object:
        assert mine.dtype == object and len(mine) == len(other), where
        for a, b in zip(mine, other):
            same(a, b, where)
    elif isinstance(other, np.ndarray):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape), where
        assert mine.tobytes() == other.tobytes(), where
    else:
        assert type(mine) is type(other) and mine == other, (where, mine, other)


WORLDS = [
    ("foveate/CarRacing-v3", {"picture": "fast", "max_episode_steps": 23}, 90),
    ("foveate/CarRacing-v3", {"picture": "fast", "continuous": False, "domain_randomize": True, "max_episode_steps": 31}, 80),
    ("foveate/CartPoleSwingUpHarder-v0", {"max_episode_steps": 40}, 300),
    ("foveate/DoorKey-5x5-v0", {"max_steps": 17}, 120),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name, options, steps", WORLDS)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_equals_gymnasiums(name, options, steps, mode, threads):
    ours = gymnasium.make_vec(name, num_envs=5, autoreset_mode=mode, threads=threads, **options)
    theirs = gymnasium.make_vec(
        name, num_envs=5, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **options
    )
    assert isinstance(ours, foveate.envs.VectorEnv) and ours.metadata["autoreset_mode"] == mode
    for space in ["observation_space", "action_space", "single_observation_space", "single_action_space"]:
        assert getattr(ours, space) == getattr(theirs, space), space
    theirs.action_space.seed(4)
    for seed in [9, None, [1, None, 3, 4, None]]:
        same(ours.reset(seed=seed), theirs.reset(seed=seed), f"reset {seed}")
        ended = 0
        for step in range(steps):
            actions = theirs.action_space.sample()
            mine, other = ours.step(actions), theirs.step(actions)
            same(mine, other, f"{name}, {mode}, step {step}")
            over = other[2] | other[3]
            ended += over.sum()
            if mode == AutoresetMode.DISABLED and over.any():
                a, b = ours.reset(options={"reset_mask": over.copy()}), theirs.reset(options={"reset_mask": over.copy()})
                same(a, b, f"reset of some after step {step}")
        assert ended >= 5, "the test must see ends of episodes"
    ours.close(), theirs.close()


@pytest.mark.parametrize("mode", MODES[:2])
def test_ends_by_the_task_equal_gymnasiums(mode):
    """Straight on, until the car leaves the field: the info of a termination."""
    make = {"num_envs": 2, "picture": "fast"}
    ours = gymnasium.make_vec("foveate/CarRacing-v3", autoreset_mode=mode, **make)
    theirs = gymnasium.make_vec("foveate/CarRacing-v3", vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **make)
    same(ours.reset(seed=6), theirs.reset(seed=6), "reset")
    ended = False
    for step in range(600):
        actions = np.array([[0, 1, 0], [0, 0, 0]], dtype=np.float32)
        mine, other = ours.step(actions), theirs.step(actions)
        for a, b in zip(mine, other):
            same(a, b, f"step {step}")
        if other[2].any():
            ended = True
            info = mine[4]["final_info"] if mode == AutoresetMode.SAME_STEP else mine[4]
            assert (info["lap_finished"][0], list(info["_lap_finished"])) == (False, [True, False])
            break
    assert ended


def test_car_racing_exact_equals_gymnasiums_batch():
    ours = gymnasium.make_vec("foveate/CarRacing-v3", num_envs=2, max_episode_steps=15)
    theirs = gymnasium.make_vec("CarRacing-v3", num_envs=2, vectorization_mode="sync", max_episode_steps=15)
    same(ours.reset(seed=2), theirs.reset(seed=2), "reset")
    theirs.action_space.seed(1)
    for step in range(40):
        actions = theirs.action_space.sample()
        for a, b in zip(ours.step(actions), theirs.step(actions)):
            same(a, b, f"step {step}")


def test_the_batch_is_copied_unless_told_otherwise():
    kept = gymnasium.make_vec("foveate/CartPoleSwingUpHarder-v0", num_envs=2, copy=False)
    first, _ = kept.reset(seed=1)
    then = kept.step(kept.action_space.sample())[0]
    assert first is then
    copied = gymnasium.make_vec("foveate/CartPoleSwingUpHarder-v0", num_envs=2)
    first, _ = copied.reset(seed=1)
    before = first.copy()
    assert copied.step(copied.action_space.sample())[0] is not first and (first == before).all()


def test_worlds_without_a_seed_differ():
    batch = gymnasium.make_vec("foveate/CartPoleSwingUpHarder-v0", num_envs=3)
    first, _ = batch.reset()
    assert len({row.tobytes() for row in first}) == 3
    assert len(set(batch.np_random_seed)) == 3


def test_a_batch_renders():
    batch = gymnasium.make_vec("foveate/CarRacing-v3", num_envs=2, picture="fast", render_mode="rgb_array")
    batch.reset(seed=1)
    pictures = batch.render()
    assert len(pictures) == 2 and pictures[0].shape == (400, 600, 3) and (pictures[0] != pictures[1]).any()
