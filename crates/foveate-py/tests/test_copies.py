"""Copies and pickles of a running world keep its episode."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest

import foveate

WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


def same(ours, theirs):
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for name in ours:
            same(ours[name], theirs[name])
    elif isinstance(ours, (tuple, list)) or getattr(ours, "dtype", None) == object:
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            same(mine, other)
    else:
        assert np.array_equal(ours, theirs), (ours, theirs)


def world(name):
    made = {
        "wrapped": lambda: gymnasium.make("foveate/CarRacing-v3", picture="fast", max_episode_steps=30),
        "colours": lambda: gymnasium.make("foveate/CarRacing-v3", picture="fast", domain_randomize=True, continuous=False),
        "noise": lambda: foveate.envs.World("car-racing", picture="fast", variant="bar", shifts=["noise:3"]),
        "process": lambda: foveate.envs.World("gym:CartPole-v1"),
    }
    return made[name]() if name in made else gymnasium.make(name)


NAMES = ["wrapped", "colours", "noise", "foveate/DoorKey-6x6-v0", "foveate/FourRooms-v0", "foveate/CartPoleSwingUpHarder-v0", "process"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_of_a_running_world_goes_on_as_the_original(name, way):
    env = world(name)
    env.action_space.seed(3)
    env.reset(seed=5)
    for _ in range(12):  # CartPole may end meanwhile
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    # The second episode comes from the stream that the seed began.
    env.reset(options={"randomize": False} if name == "colours" else None)
    for _ in range(3):
        env.step(env.action_space.sample())
    if way == "copy":
        env = env.unwrapped  # a wrapper's shallow copy shares its world, as Gymnasium's do
    other = WAYS[way](env)
    for _ in range(25):
        action = env.action_space.sample()
        mine, theirs = env.step(action), other.step(action)
        same(mine, theirs)
        if mine[2] or mine[3]:
            break
    same(env.reset(), other.reset())
    # They are two.
    before = other.step(env.action_space.sample())[0]
    env.reset(seed=1)
    assert env is not other and before is not None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("name", ["foveate/CarRacing-v3", "foveate/DoorKey-5x5-v0"])
def test_so_does_a_copy_of_a_batch(name, mode, way):
    options = {"picture": "fast", "max_episode_steps": 9} if "Car" in name else {"max_steps": 9}
    batch = gymnasium.make_vec(name, num_envs=3, autoreset_mode=mode, threads=2, **options)
    batch.action_space.seed(2)
    batch.reset(seed=4)

    def step(batch, actions):
        done = batch.step(actions)
        over = done[2] | done[3]
        if mode == "Disabled" and over.any():
            batch.reset(options={"reset_mask": over})
        return done

    for _ in range(13):
        step(batch, batch.action_space.sample())
    other = WAYS[way](batch)
    for _ in range(20):
        actions = batch.action_space.sample()
        same(step(batch, actions), step(other, actions))
    batch.close()
    # The copy has threads of its own.
    step(other, other.action_space.sample())
    other.close()


def test_a_world_of_another_kind_of_state_is_made_anew_and_pickles_before_a_reset():
    env = foveate.envs.World("car-racing", picture="fast")
    other = pickle.loads(pickle.dumps(env))
    same(env.reset(seed=4), other.reset(seed=4))
    old = foveate.envs.World.__new__(foveate.envs.World)
    old.__setstate__({"_ezpickle_args": ("four-rooms",), "_ezpickle_kwargs": {}})  # as pickles of earlier versions are
    assert old.reset(seed=1)[0].shape == (7, 7, 3)


def test_what_cannot_be_pickled_says_so():
    env = foveate.envs.World("cartpole-swingup-harder")
    env.reset(seed=1)
    action = np.zeros(1, np.float32)
    for _ in range(530_000):
        if any(env.step(action)[2:4]):
            env.reset()
    with pytest.raises(foveate.FoveateError, match="more steps since its last seed than a pickle keeps.*reset.seed=...."):
        pickle.dumps(env)
    other = copy.deepcopy(env)
    same(env.reset(), other.reset())
    env.reset(seed=2)
    again = pickle.loads(pickle.dumps(env))
    same(env.step(action), again.step(action))
