"""Models of MuJoCo that crash, never end or take all memory: each is an exception of one line, and the interpreter lives."""

import concurrent.futures
import os
import pathlib
import resource
import signal
import sys
import threading
import time

import hostile_models
import numpy as np
import pytest

import foveate

_WORLDS = os.environ.get("FOVEATE_WORLDS_PYTHON")


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """MuJoCo's library beside the Python of the worlds."""
    if not _WORLDS:
        pytest.skip("FOVEATE_WORLDS_PYTHON names no Python with mujoco; run cargo xtask test")
    monkeypatch.setenv("FOVEATE_MUJOCO", str(pathlib.Path(_WORLDS).parent.parent))


def _said(file):
    """What a model's world says; an empty text when it can be stepped."""
    try:
        world = foveate.envs.World(f"mjcf:{file}", options={"start_timeout": 2})
        world.reset(seed=1)
        for _ in range(3):
            world.step(np.zeros(world.action_space.shape))
    except foveate.FoveateError as error:
        return str(error)
    return ""


def test_hostile_models_are_exceptions_of_one_line(tmp_path):
    files = hostile_models.write(tmp_path)
    assert len(files) >= 150
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        said = dict(zip(files, pool.map(_said, files)))
    wrong = {file.name: text for file, text in said.items() if len(text.splitlines()) > 1 or len(text) > 1200}
    assert not wrong
    assert sum(map(bool, said.values())) * 3 > len(files) * 2
    # KiB on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        assert resource.getrusage(who).ru_maxrss * unit < 1 << 30


def test_a_signal_ends_a_compilation(tmp_path):
    file = tmp_path / "endless.xml"
    file.write_text(hostile_models.model(world='<replicate count="2000000000"><geom size=".1"/></replicate>'))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    # A shell lets programs in its background ignore SIGINT; Python then has no handler of its own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            foveate.envs.World(f"mjcf:{file}", options={"start_timeout": 600, "memory": 60000})
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 60


def test_a_reset_that_fails_is_an_exception(tmp_path):
    file = tmp_path / "nan.xml"
    file.write_text(hostile_models.model(world='<body pos="0 0 nan"><freejoint/><geom size=".1"/></body>'))
    world = foveate.envs.World(f"mjcf:{file}")
    with pytest.raises(foveate.FoveateError, match="reset: positions\\[2\\] is NaN"):
        world.reset(seed=1)
    worlds = foveate.envs.VectorEnv(f"mjcf:{file}", 2)
    with pytest.raises(foveate.FoveateError, match="NaN"):
        worlds.reset(seed=1)
    file.write_text(hostile_models.model("<option timestep='1e300' gravity='0 0 -1e300'/>", '<body><freejoint/><geom size=".1"/></body>'))
    world = foveate.envs.World(f"mjcf:{file}")
    world.reset(seed=1)
    with pytest.raises(foveate.FoveateError, match="diverged"):
        for _ in range(3):
            world.step(np.zeros(world.action_space.shape))
