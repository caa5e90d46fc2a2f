"""Tasks of the DeepMind Control suite as environments of Gymnasium."""

import os
import pathlib

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import foveate

_WORLDS = os.environ.get("FOVEATE_WORLDS_PYTHON")


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """MuJoCo's library beside the Python of the worlds."""
    if not _WORLDS:
        pytest.skip("FOVEATE_WORLDS_PYTHON names no Python with mujoco; run cargo xtask test")
    monkeypatch.setenv("FOVEATE_MUJOCO", str(pathlib.Path(_WORLDS).parent.parent))


@pytest.mark.filterwarnings("error")
def test_gymnasium_finds_no_fault():
    env = gymnasium.make("foveate/DMControlCartPoleSwingUp-v0", size=32, repeat=4, render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=1)
    assert env.render().shape == (480, 480, 3)


def test_pictures_and_numbers_are_of_one_episode():
    made = {
        picture: gymnasium.make("foveate/DMControlReacherEasy-v0", picture=picture, size=(40, 30), repeat=2)
        for picture in ("pixels", "state", "both")
    }
    seen = {picture: env.reset(seed=7)[0] for picture, env in made.items()}
    for step in range(20):
        assert seen["pixels"].shape == (30, 40, 3) and seen["pixels"].dtype == np.uint8
        assert np.array_equal(seen["both"]["image"], seen["pixels"])
        assert np.array_equal(seen["both"]["sensors"], seen["state"])
        action = np.full(2, np.sin(step), dtype=np.float32)
        done = {picture: env.step(action) for picture, env in made.items()}
        seen = {picture: outcome[0] for picture, outcome in done.items()}
        assert len({outcome[1] for outcome in done.values()}) == 1


def test_episodes_are_truncated():
    env = gymnasium.make("foveate/DMControlFingerSpin-v0", picture="state", repeat=100)
    env.reset(seed=3)
    flags = [env.step(np.zeros(2, dtype=np.float32))[2:4] for _ in range(10)]
    assert flags == [(False, False)] * 9 + [(False, True)]


def test_a_batch_is_its_worlds():
    options = {"size": 24, "repeat": 4, "variant": "distracting:level=hard:dynamic=true"}
    batch = gymnasium.make_vec("foveate/DMControlCheetahRun-v0", num_envs=3, **options)
    singles = [gymnasium.make("foveate/DMControlCheetahRun-v0", **options) for _ in range(3)]
    shown, _ = batch.reset(seed=5)
    alone = [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)]
    actions = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 6)
    for _ in range(5):
        assert np.array_equal(shown, np.stack(alone))
        shown, rewards, *_ = batch.step(actions)
        outcomes = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        alone = [outcome[0] for outcome in outcomes]
        assert rewards.tolist() == [outcome[1] for outcome in outcomes]
    batch.close()


def test_what_is_wrong_is_said(monkeypatch):
    with pytest.raises(foveate.errors.OptionError, match="no task is called 'humanoid-run'"):
        foveate.envs.DMControl("humanoid-run")
    with pytest.raises(Exception, match="size is a side or WIDTHxHEIGHT"):
        foveate.envs.DMControl("cheetah-run", size=0)
    with pytest.raises(Exception, match="choose the picture pixels"):
        foveate.envs.DMControl("cheetah-run", picture="state", variant="colors")
    monkeypatch.setenv("FOVEATE_MUJOCO", "/nowhere")
    with pytest.raises(Exception, match="pip install mujoco"):
        foveate.envs.DMControl("cheetah-run")
