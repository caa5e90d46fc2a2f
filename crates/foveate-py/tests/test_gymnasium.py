"""Worlds through `gymnasium.make`, beside Gymnasium's and MiniGrid's own."""

import copy
import pickle
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import foveate

# What a driver does on average; random actions around it leave the road and come back.
DRIVE = np.array([0.0, 0.3, 0.0])


def driver(seed, dtype=np.float32):
    """Smooth random actions: an episode of them turns, brakes, leaves the road and sometimes the field."""
    rng = np.random.default_rng(seed)
    state = np.zeros(3)
    while True:
        state = 0.9 * state + 0.3 * rng.normal(size=3)
        yield np.clip(DRIVE + state, [-1, 0, 0], [1, 1, 1]).astype(dtype)


def same(ours, theirs, where):
    """Compares what two worlds returned, to the bit."""
    assert len(ours) == len(theirs), where
    for mine, other in zip(ours, theirs):
        if isinstance(other, np.ndarray):
            assert mine.dtype == other.dtype and mine.shape == other.shape, where
            assert mine.tobytes() == other.tobytes(), where
        else:
            assert mine == other, (where, mine, other)


def compare(ours, theirs, episodes, actions_of, first_reset):
    steps = 0
    for episode in range(episodes):
        reset = first_reset if episode == 0 else {}
        if episode % 5 == 4:
            reset = {"seed": 1000 + episode}
        same(ours.reset(**reset), theirs.reset(**reset), f"reset {episode}")
        actions = actions_of(episode)
        over = False
        while not over:
            action = next(actions)
            mine, other = ours.step(action), theirs.step(action)
            same(mine, other, f"episode {episode}, step {steps}")
            steps += 1
            over = other[2] or other[3]
    return steps


def test_car_racing_equals_gymnasiums_to_the_bit(episodes):
    ours, theirs = gymnasium.make("foveate/CarRacing-v3"), gymnasium.make("CarRacing-v3")
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    steps = compare(ours, theirs, episodes, driver, {"seed": 7})
    assert steps >= 100 * episodes
    print(f"{episodes} episodes, {steps} steps: equal")


@pytest.mark.parametrize(
    "options, actions",
    [
        ({"continuous": False}, lambda e: iter(np.random.default_rng(e).choice(5, p=[0.1, 0.15, 0.15, 0.5, 0.1]) for _ in range(10**6))),
        ({"domain_randomize": True}, driver),
        ({"lap_complete_percent": 0.5}, driver),
        ({}, lambda e: driver(e, np.float64)),
    ],
)
def test_options_of_car_racing_equal_gymnasiums(options, actions):
    short = {"max_episode_steps": 60}
    ours = gymnasium.make("foveate/CarRacing-v3", **options, **short)
    theirs = gymnasium.make("CarRacing-v3", **options, **short)
    compare(ours, theirs, 3, actions, {"seed": 3})


def test_colours_are_kept_when_a_reset_says_so():
    ours = gymnasium.make("foveate/CarRacing-v3", domain_randomize=True)
    theirs = gymnasium.make("CarRacing-v3", domain_randomize=True)
    for reset in [{"seed": 1}, {"options": {"randomize": False}}, {"options": {"randomize": True}}, {"seed": 2, "options": {"randomize": False}}]:
        same(ours.reset(**reset), theirs.reset(**reset), str(reset))


def test_leaving_the_field_ends_the_episode_as_in_gymnasium():
    def straight(_):
        while True:
            yield np.array([0.0, 1.0, 0.0], dtype=np.float32)

    ours, theirs = gymnasium.make("foveate/CarRacing-v3"), gymnasium.make("CarRacing-v3")
    ours.reset(seed=6), theirs.reset(seed=6)
    for action in straight(0):
        mine, other = ours.step(action), theirs.step(action)
        same(mine[1:], other[1:], "straight on")
        if other[2] or other[3]:
            break
    assert mine[4] == {"lap_finished": False} and mine[1] == -100


@pytest.mark.parametrize("size", [5, 6, 8, 16])
def test_door_key_equals_minigrids(size):
    minigrid = pytest.importorskip("minigrid")
    assert minigrid
    ours = gymnasium.make(f"foveate/DoorKey-{size}x{size}-v0")
    theirs = gymnasium.make(f"MiniGrid-DoorKey-{size}x{size}-v0")
    rng = np.random.default_rng(size)
    for episode in range(4):
        seed = {"seed": 11} if episode == 0 else {}
        mine, other = ours.reset(**seed)[0], theirs.reset(**seed)[0]["image"]
        same([mine], [other], f"reset {episode}")
        for step in range(200):
            action = rng.choice(7, p=[0.2, 0.2, 0.3, 0.12, 0.02, 0.15, 0.01])
            mine, other = ours.step(action), theirs.step(action)
            same([mine[0], *mine[1:4]], [other[0]["image"], *other[1:4]], f"episode {episode}, step {step}")
            if other[2] or other[3]:
                break


IDS = ["foveate/CarRacing-v3", "foveate/DoorKey-5x5-v0", "foveate/DoorKey-16x16-v0", "foveate/CartPoleSwingUpHarder-v0"]


@pytest.mark.parametrize(("name", "picture"), [*((name, None) for name in IDS), (IDS[0], "fast"), (IDS[0], "classic")])
def test_check_env_has_nothing_to_say(name, picture):
    options = {} if picture is None else {"picture": picture}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(gymnasium.make(name, **options).unwrapped)
        rendered = gymnasium.make(name, render_mode="rgb_array", **options).unwrapped
        check_env(rendered)
    # CarRacing's own action space is asymmetric, and sensors have no bounds: of both Gymnasium's checker always warns.
    known = ["symmetric", "observation space minimum value is -infinity", "observation space maximum value is infinity"]
    said = [str(one.message) for one in said if not any(text in str(one.message) for text in known)]
    assert not said, said


@pytest.mark.parametrize("name", IDS)
def test_a_seed_repeats_and_resets_go_on(name):
    first, second = gymnasium.make(name), gymnasium.make(name)
    for reset in [{"seed": 5}, {}, {}]:
        same(first.reset(**reset), second.reset(**reset), name)
    unseeded = [gymnasium.make(name).reset()[0].tobytes() for _ in range(3)]
    if "CarRacing" in name or "CartPole" in name:
        assert len(set(unseeded)) == 3, "worlds without a seed draw one"


def test_pictures_for_people():
    env = gymnasium.make("foveate/CarRacing-v3", render_mode="rgb_array")
    env.reset(seed=1)
    picture = env.render()
    assert (picture.shape, picture.dtype) == ((400, 600, 3), np.uint8) and picture.std() > 10
    pixels = gymnasium.make("foveate/CarRacing-v3", render_mode="state_pixels")
    observation, _ = pixels.reset(seed=1)
    same([pixels.render()], [observation], "state_pixels")


def test_a_window_is_shown(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make("foveate/CartPoleSwingUpHarder-v0", render_mode="human")
    env.reset(seed=1)
    env.step(np.zeros(1, np.float32))
    assert env.render() is None
    env.close()


def test_without_pygame_the_message_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match=r'pip install "foveate\[human\]"'):
        gymnasium.make("foveate/CarRacing-v3", render_mode="human")


def test_copies_and_pickles_are_made_anew():
    env = gymnasium.make("foveate/CarRacing-v3", picture="fast", variant="bar", shifts=["hue:2"]).unwrapped
    for other in [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]:
        same(env.reset(seed=4), other.reset(seed=4), "a copy")


def test_variants_and_shifts_change_the_observation():
    plain = gymnasium.make("foveate/CarRacing-v3").reset(seed=1)[0]
    for options in [{"variant": "bar"}, {"shifts": "noise:3"}, {"picture": "fast"}, {"picture": "classic"}]:
        assert (gymnasium.make("foveate/CarRacing-v3", **options).reset(seed=1)[0] != plain).any(), options
    with pytest.raises(foveate.errors.OptionError, match="has no picture \"exactly\""):
        gymnasium.make("foveate/CarRacing-v3", picture="exactly")


def test_other_worlds_have_their_names():
    env = foveate.envs.World("four-rooms", picture="rgb", options={"max_steps": 5})
    env.reset(seed=1)
    ends = [env.step(0)[3] for _ in range(5)]
    assert ends == [False] * 4 + [True]
    with pytest.raises(foveate.errors.OptionError, match="no environment is called \"four-room\""):
        foveate.envs.World("four-room")


def test_the_wrappers_of_training_scripts_see_no_difference():
    """The wrappers in which single-file trainings (CleanRL's PPO for continuous actions) put every environment."""
    wrappers = gymnasium.wrappers

    def batch(name):
        def one():
            env = wrappers.FlattenObservation(gymnasium.make(name))
            env = wrappers.ClipAction(wrappers.RecordEpisodeStatistics(env))
            env = wrappers.NormalizeObservation(env)
            env = wrappers.TransformObservation(env, lambda seen: np.clip(seen, -10, 10), env.observation_space)
            env = wrappers.NormalizeReward(env, gamma=0.99)
            return wrappers.TransformReward(env, lambda reward: np.clip(reward, -10, 10))

        return gymnasium.vector.SyncVectorEnv([one, one], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)

    ours, theirs = batch("foveate/CarRacing-v3"), batch("CarRacing-v3")
    assert (ours.single_observation_space, ours.single_action_space) == (theirs.single_observation_space, theirs.single_action_space)
    assert np.array_equal(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    draw = np.random.default_rng(5)
    for _ in range(30):
        action = draw.normal(0, 2, (2, 3)).astype(np.float32)
        mine, other = ours.step(action), theirs.step(action)
        for part in range(4):
            assert np.array_equal(mine[part], other[part])
    ours.close(), theirs.close()


def test_an_older_gymnasium_has_single_worlds():
    script = """
import gymnasium
import gymnasium.vector
del gymnasium.vector.AutoresetMode  # as before Gymnasium 1.1
import foveate
env = gymnasium.make("foveate/CarRacing-v3", picture="fast")
first, _ = env.reset(seed=3)
shown, reward, *_ = env.step(env.action_space.sample())
print(first.shape, shown.shape, reward < 100)
try:
    foveate.envs.VectorEnv("car-racing", num_envs=2)
except gymnasium.error.DependencyNotInstalled as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert said[0] == "(96, 96, 3) (96, 96, 3) True"
    assert said[1].startswith(f"batches of worlds need Gymnasium 1.1 or newer, and this is {gymnasium.__version__}: pip")
