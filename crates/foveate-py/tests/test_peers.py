"""What Gymnasium, Stable-Baselines3 and Minari ask of an environment, on every id that is registered.

Gymnasium's own folders `tests/envs`, `tests/vector` and `tests/wrappers` are in no release, so their checks are written here by their
names; its `check_env` is the released one. Stable-Baselines3's `check_env` imports PyTorch for annotations alone, which an empty module
stands for. Minari records into a folder of the test.
"""

import importlib.machinery
import os
import pathlib
import sys
import types
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import foveate

_WORLDS = os.environ.get("FOVEATE_WORLDS_PYTHON")
IDS = sorted(name for name in gymnasium.registry if name.startswith("foveate/"))

# What Gymnasium's checker says of its own environments of these kinds, too: CarRacing's action space is asymmetric, and sensors have
# no bounds. Of DeepMind Control, dm_control's own bounds are infinite.
KNOWN = ["symmetric", "observation space minimum value is -infinity", "observation space maximum value is infinity"]


def make(name, **options):
    if "DMControl" in name:
        options = {"size": 32, **options}
    return gymnasium.make(name, **options)


@pytest.fixture(autouse=True)
def library(request, monkeypatch):
    """Tasks of DeepMind Control need MuJoCo's library."""
    name = request.node.callspec.params.get("name", "") if hasattr(request.node, "callspec") else ""
    if "DMControl" in name:
        if not _WORLDS:
            pytest.skip("FOVEATE_WORLDS_PYTHON names no Python with mujoco; run cargo xtask test")
        monkeypatch.setenv("FOVEATE_MUJOCO", str(pathlib.Path(_WORLDS).parent.parent))


def test_every_world_of_minigrid_has_an_id():
    from foveate import envs

    named = {gymnasium.spec(name).kwargs.get("world") or f"door-key-{gymnasium.spec(name).kwargs['size']}x{gymnasium.spec(name).kwargs['size']}"
             for name in IDS if gymnasium.spec(name).entry_point in ("foveate.envs:MiniGrid", "foveate.envs:DoorKey")}
    try:
        envs.World("minigrid-of-no-name")
    except foveate.FoveateError as error:
        known = str(error)
    # The error about a name lists those that there are.
    there = [word.strip(" ,;()") for word in known.split() if word.startswith(("door-key-", "empty-", "four-", "lava-", "simple-"))]
    assert there, known
    assert named == set(there)


@pytest.mark.parametrize("name", [name for name in IDS if "DMControl" not in name and "CarRacing" not in name and "CartPole" not in name])
def test_they_are_minigrids(name):
    """The same name with the package's prefix: the same views, rewards and ends."""
    pytest.importorskip("minigrid")
    ours, theirs = make(name), gymnasium.make(name.replace("foveate/", "MiniGrid-"))
    draw = np.random.default_rng(7)
    for episode in range(2):
        seed = {"seed": 11} if episode == 0 else {}
        assert np.array_equal(ours.reset(**seed)[0], theirs.reset(**seed)[0]["image"])
        for _ in range(60):
            action = int(draw.integers(0, 7))
            mine, other = ours.step(action), theirs.step(action)
            assert np.array_equal(mine[0], other[0]["image"]) and mine[1:4] == other[1:4]
            if mine[2] or mine[3]:
                break


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_check_env(name):
    """`tests/envs/test_envs.py`: `test_all_env_api`, `test_all_env_passive_env_checker`, `test_render_modes`."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(make(name, disable_env_checker=True).unwrapped, skip_render_check=True)
        env = make(name)  # in the passive checker
        env.reset(seed=0)
        env.step(env.action_space.sample())
        for mode in env.metadata["render_modes"]:
            if mode != "human":
                shown = make(name, render_mode=mode)
                shown.reset(seed=0)
                picture = shown.render()
                assert picture.dtype == np.uint8 and picture.ndim == 3, mode
    said = [str(one.message) for one in said if not any(text in str(one.message) for text in KNOWN)]
    assert not said, said


@pytest.mark.parametrize("name", IDS)
def test_pixels_of_the_state_only_where_there_are_pixels(name):
    env = make(name)
    pixels = env.observation_space.dtype == np.uint8 and env.observation_space.shape[-1] == 3 and "CarRacing" in name or "DMControl" in name
    assert ("state_pixels" in env.unwrapped.metadata["render_modes"]) == pixels
    if not pixels:
        with pytest.raises(foveate.errors.OptionError, match="'state_pixels' is the picture that the agent sees, and .* shows none"):
            env.unwrapped.__class__(**env.spec.kwargs, render_mode="state_pixels")


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_determinism(name):
    """`tests/envs/test_env_implementation.py`: `test_env_determinism_rollout`, and what an environment returns is its own."""
    one, two = make(name, disable_env_checker=True), make(name, disable_env_checker=True)
    one.action_space.seed(0)
    kept = []
    for env_seed in (0, None):
        mine, other = one.reset(seed=env_seed), two.reset(seed=env_seed)
        assert np.array_equal(mine[0], other[0]) and mine[1] == other[1]
        for _ in range(20):
            action = one.action_space.sample()
            before = np.array(action, copy=True)
            mine, other = one.step(action), two.step(action)
            assert np.array_equal(mine[0], other[0]) and mine[1:] == other[1:] and np.array_equal(before, action)
            assert one.observation_space.contains(mine[0])
            kept.append((mine[0], mine[0].copy()))
            if mine[2] or mine[3]:
                break
    assert all(np.array_equal(shown, copied) for shown, copied in kept), "an observation changed after it was returned"


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_vectors(name):
    """`tests/vector/test_vector_env.py`: `test_vector_env_equal`, with `SyncVectorEnv`; `test_vector_make.py`."""
    options = {"size": 24} if "DMControl" in name else {}
    ours = gymnasium.make_vec(name, num_envs=3, **options)
    theirs = gymnasium.make_vec(name, num_envs=3, vectorization_mode="sync", **options)
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(ours, space) == getattr(theirs, space), space
    assert ours.num_envs == theirs.num_envs == 3
    ours.action_space.seed(1)
    assert np.array_equal(ours.reset(seed=0)[0], theirs.reset(seed=0)[0])
    for _ in range(15):
        actions = ours.action_space.sample()
        mine, other = ours.step(actions), theirs.step(actions)
        assert all(np.array_equal(a, b) for a, b in zip(mine[:4], other[:4]))
        assert mine[0] in ours.observation_space
    ours.close(), theirs.close()
    ours.close()  # twice is once
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(gymnasium.make_vec(name, num_envs=2, **options))
    wrapped.reset(seed=0)
    wrapped.step(wrapped.action_space.sample())
    wrapped.close()


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_wrappers(name, tmp_path):
    """`tests/wrappers`: those that fit any environment, and those for pictures or numbers where the world has them."""
    wrappers = gymnasium.wrappers
    image = make(name).observation_space.dtype == np.uint8
    box = isinstance(make(name).action_space, gymnasium.spaces.Box)
    chains = {
        "TimeLimit": lambda env: wrappers.TimeLimit(env, 3),
        "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
        "FlattenObservation": wrappers.FlattenObservation,
        "FrameStackObservation": lambda env: wrappers.FrameStackObservation(env, 2),
        "TransformReward": lambda env: wrappers.TransformReward(env, lambda reward: 2 * reward),
        "NormalizeReward": wrappers.NormalizeReward,
        "NormalizeObservation": wrappers.NormalizeObservation,
        "DelayObservation": lambda env: wrappers.DelayObservation(env, 1),
        # It asks for Gymnasium's limit of steps, which MiniGrid's worlds and dm_control's, which have their own, do not have there either.
        "TimeAwareObservation": lambda env: wrappers.TimeAwareObservation(wrappers.TimeLimit(env, 50), flatten=False),
        "Autoreset": wrappers.Autoreset,
        "StickyAction": lambda env: wrappers.StickyAction(env, 0.5),
        "DtypeObservation": lambda env: wrappers.DtypeObservation(env, np.float64),
        "MaxAndSkipObservation": lambda env: wrappers.MaxAndSkipObservation(env, 2),
        "AddRenderObservation": wrappers.AddRenderObservation,
        "RenderCollection": wrappers.RenderCollection,
        **({"ClipAction": wrappers.ClipAction, "RescaleAction": lambda env: wrappers.RescaleAction(env, -1, 1)} if box else {}),
        **({"GrayscaleObservation": wrappers.GrayscaleObservation, "ResizeObservation": lambda env: wrappers.ResizeObservation(env, (32, 32))}
           if image and make(name).observation_space.shape[-1] == 3 else {}),
    }
    for called, wrap in chains.items():
        env = wrap(make(name, render_mode="rgb_array"))
        env.action_space.seed(0)
        observation, _ = env.reset(seed=1)
        for _ in range(3):
            if called not in ("NormalizeObservation", "TimeAwareObservation"):  # which change the type
                assert env.observation_space.contains(observation), called
            observation, reward, *_ = env.step(env.action_space.sample())
            assert np.isfinite(reward), called
        env.close()


def absent(name):
    """Stands for something of PyTorch in annotations."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(name, (), {})


class Absent(type):
    def __getattr__(cls, name):
        return absent(name)


@pytest.fixture
def stable_baselines(monkeypatch):
    """Stable-Baselines3's checker without PyTorch, unless that is installed."""
    found = importlib.machinery.PathFinder.find_spec("stable_baselines3")
    if found is None:
        pytest.skip("stable-baselines3 is not installed; run cargo xtask test")
    if importlib.machinery.PathFinder.find_spec("torch") is None:
        for name in ("torch", "torch.nn", "torch.nn.functional"):
            module = types.ModuleType(name)
            module.__getattr__ = absent
            monkeypatch.setitem(sys.modules, name, module)
    # The package's own __init__ imports its algorithms, which need all of PyTorch.
    for name in ("stable_baselines3", "stable_baselines3.common"):
        package = types.ModuleType(name)
        package.__path__ = [str(pathlib.Path(found.submodule_search_locations[0], *name.split(".")[1:]))]
        monkeypatch.setitem(sys.modules, name, package)
    yield
    for name in [name for name in sys.modules if name.startswith("stable_baselines3")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", IDS)
def test_stable_baselines_check_env(name, stable_baselines):
    from stable_baselines3.common.env_checker import check_env as check

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check(make(name).unwrapped, warn=True, skip_render_check=False)
    # It asks for actions from -1 to 1, as its own algorithms prefer, and takes 7x7x3 codes of cells for a picture: both are the
    # shapes that Gymnasium's CarRacing and MiniGrid have, so they stay.
    fits = ["symmetric and normalized Box action space", "minimal resolution for an image is 36x36"]
    said = [str(one.message) for one in said if not any(text in str(one.message) for text in [*KNOWN, *fits])]
    assert not said, said


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", IDS)
def test_minari_records(name, tmp_path, monkeypatch):
    minari = pytest.importorskip("minari", reason="minari is not installed; run cargo xtask test")
    pytest.importorskip("h5py", reason="h5py is not installed; run cargo xtask test")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    options = {"size": 24} if "DMControl" in name else {}
    env = minari.DataCollector(gymnasium.make(name, max_episode_steps=6, **options), data_format="hdf5")
    env.action_space.seed(0)
    for episode in range(2):
        env.reset(seed=episode)
        while not any(env.step(env.action_space.sample())[2:4]):
            pass
    data = env.create_dataset("foveate/test-v0", algorithm_name="random", description="a test")
    assert data.total_episodes == 2
    # The environment that the file names is made again and plays the same. Minari keeps CarRacing's pictures, also those of
    # Gymnasium's own, as JPEG, which changes them.
    exact = "CarRacing" not in name
    again = data.recover_environment()
    for episode in data.iterate_episodes():
        shown, _ = again.reset(seed=int(episode.id))
        for step in range(len(episode.actions)):
            assert not exact or np.array_equal(shown, episode.observations[step])
            shown, reward, *_ = again.step(episode.actions[step])
            assert reward == episode.rewards[step]
    env.close()
