"""Runs on Ray clusters have the bits of runs on one machine, whatever happens to the machines."""

import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import foveate
from foveate._native import RolloutWorker

# Workers of a cluster host Atari with the interpreter that runs these tests.
os.environ.setdefault("FOVEATE_PYTHON", sys.executable)

ray = pytest.importorskip("ray", reason="Ray is not installed")

from ray.cluster_utils import Cluster  # noqa: E402

from foveate.ray import RayCluster, _set_token  # noqa: E402

#: A short run of evolution.
SHORT = {
    "videos": False, "workers": 2, "env.picture": "fast", "recipe.selection.every": 8000, "recipe.selection.tracks": 3,
    "recipe.selection.final_tracks": 2, "recipe.selection.report_tracks": 3, "recipe.selection.evaluation_tracks": 0,
    "recipe.stage.0.starts": 1, "recipe.stage.0.steps": 8000, "recipe.stage.1.steps": 8000,
}


def train(runs, name, **arguments):
    return foveate.train("car-racing", preset="evolution", set=SHORT, runs=runs, name=name, **arguments)


def outcome(run):
    """The weights, and the log without its times."""
    folder = run if isinstance(run, Path) else run.folder
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    log = [{key: value for key, value in line.items() if "seconds" not in key} for line in lines]
    return log, (folder / "best.safetensors").read_bytes(), (folder / "last.safetensors").read_bytes()


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The same run on this machine."""
    return outcome(train(tmp_path_factory.mktemp("here"), "here"))


@pytest.fixture
def nodes():
    """A cluster of two nodes with two cores each, and this program on it."""
    # Ray's own processes need a token, which `ray.init` alone would make.
    _set_token(secrets.token_hex(32))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    _set_token(None)


def workers_here():
    """The processes of workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"ray::Rollouts" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def listening(of):
    """The addresses on which a process and its descendants listen, as the kernel writes them."""
    parents, inodes = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            for file in (folder / "fd").iterdir():
                target = os.readlink(file)
                if target.startswith("socket:["):
                    inodes.setdefault(target[8:-1], int(folder.name))
        except OSError:
            continue
    family, more = {of}, True
    while more:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and inodes.get(words[9]) in family:
                found.append(words[1].split(":")[0])
    return found


#: What another user tries: to find the token, and to use the cluster without it.
STRANGER = """
import os, pathlib, sys
address, folder, home = sys.argv[1:]
needle = sys.stdin.read().encode()
read = []
for root in (folder, home + "/.ray", "/dev/shm", "/tmp"):
    for path, folders, files in os.walk(root):
        for name in files:
            file = pathlib.Path(path, name)
            try:
                if file.is_file() and file.stat().st_size < 1 << 22 and needle in file.read_bytes():
                    read.append(str(file))
            except OSError:
                pass
for process in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("environ", "cmdline"):
        try:
            if process.name != str(os.getpid()) and needle in (process / name).read_bytes():
                read.append(str(process / name))
        except OSError:
            pass
print("uid", os.getuid(), "token in", read, "folder", os.access(folder, os.X_OK))
from ray._raylet import GcsClient
try:
    print("got in", GcsClient(address=address).internal_kv_keys(b"", b"", 5.0))
except Exception as error:
    print("refused", type(error).__name__)
"""


def test_a_local_cluster_is_for_its_user_alone(tmp_path, monkeypatch):
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    tokens = set()
    for _ in range(2):
        with RayCluster("local", workers=1):
            tokens.add(os.environ["RAY_AUTH_TOKEN"])
            found = listening(os.getpid())
            assert found and all(address in ("0100007F", "0000000000000000FFFF00000100007F") for address in found), found
            folder = Path(ray._private.worker._global_node.get_session_dir_path()).parent.parent
            assert folder.stat().st_mode & 0o777 == 0o700, folder
        assert "RAY_AUTH_TOKEN" not in os.environ and not folder.exists()
    assert len(tokens) == 2, "each cluster has its own"
    assert not (tmp_path / ".ray").exists(), "no token is written"


def test_another_user_cannot_use_a_local_cluster(tmp_path, monkeypatch):
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can try as another user, with setpriv")
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    tmp_path.chmod(0o755)
    with RayCluster("local", workers=1):
        token = os.environ["RAY_AUTH_TOKEN"]
        address = ray.get_runtime_context().gcs_address
        folder = Path(ray._private.worker._global_node.get_session_dir_path()).parent.parent
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", STRANGER]
        environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/"}
        for mode in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}):
            done = subprocess.run(
                [*command, address, str(folder), str(tmp_path)],
                input=token, env={**environment, **mode}, cwd="/", capture_output=True, text=True, timeout=400,
            )
            assert "uid 65534 token in [] folder False" in done.stdout, (done.stdout, done.stderr)
            assert "refused" in done.stdout and "got in" not in done.stdout, (done.stdout, done.stderr)


def test_any_number_of_workers_on_two_nodes(nodes, tmp_path, here):
    for workers in (1, 2, 5):
        with RayCluster(workers=workers) as cluster:
            assert outcome(train(tmp_path, f"on-{workers}", cluster=cluster)) == here, workers
            assert cluster.workers() == min(workers, 4), "there are four cores"


def test_workers_are_killed(nodes, tmp_path, here, kills):
    """At random moments; the calls that they had are answered by others."""
    killed, over = [], threading.Event()

    def kill():
        draw = random.Random(3)
        while not over.is_set():
            alive = workers_here()
            if alive:
                victim = draw.choice(alive)
                try:
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)
                except ProcessLookupError:
                    pass
            over.wait(draw.uniform(0.3, 1.2))

    killer = threading.Thread(target=kill)
    with RayCluster() as cluster:
        killer.start()
        try:
            run = 0
            while len(killed) < kills or run == 0:
                run += 1
                assert outcome(train(tmp_path, f"run-{run}", cluster=cluster)) == here
        finally:
            over.set()
            killer.join()
    print(f"{len(killed)} workers killed in {run} runs")
    assert killed


def test_a_node_is_lost_and_another_joins(nodes, tmp_path, here):
    """While one run follows the other; Ray starts nodes on the main thread only."""
    over, outcomes = threading.Event(), []

    def trains(cluster):
        while not over.is_set():
            outcomes.append(outcome(train(tmp_path, f"run-{len(outcomes)}", cluster=cluster)))

    with RayCluster() as cluster:
        trainer = threading.Thread(target=trains, args=(cluster,))
        trainer.start()
        try:
            wait_for_generations(tmp_path / "run-0", 2)
            nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
            time.sleep(1.0)
            nodes.add_node(num_cpus=2)
            nodes.wait_for_nodes()
            after = len(outcomes)
            wait_for_generations(tmp_path / f"run-{after + 1}", 2)
        finally:
            over.set()
            trainer.join()
        assert cluster.workers() == 4, "the new node works, too"
    assert len(outcomes) > after and all(seen == here for seen in outcomes)


def wait_for_generations(folder, count):
    """Until a run's log has so many lines."""
    until = time.monotonic() + 120
    while not ((folder / "log.jsonl").exists() and len((folder / "log.jsonl").read_text().splitlines()) > count):
        assert time.monotonic() < until, f"no {count} generations in two minutes"
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_the_driver_is_killed_and_resumed(tmp_path, here):
    """By the command, each with a cluster of its own."""
    program = [sys.executable, "-c", "from foveate._command import main; main()", "train"]
    sets = [f"--set={key}={json.dumps(value)}" for key, value in SHORT.items()]
    begin = [*program, "car-racing", "--preset", "evolution", *sets, "--name", "killed", "--cluster", "local", "--workers", "2"]
    child = subprocess.Popen(begin, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for_generations(tmp_path / "runs" / "killed", 3)
    finally:
        child.kill()
        child.communicate()
    again = [*program, "--resume", "runs/killed", "--cluster", "local"]
    ended = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "rollouts on a cluster" in ended.stdout + ended.stderr
    assert outcome(tmp_path / "runs" / "killed") == here


def test_actors_of_v_trace_play_pong_on_two_nodes(nodes, tmp_path):
    """One learner here, its actors on the cluster."""
    pytest.importorskip("ale_py", reason="Atari is not installed")
    sets = {
        "videos": False, "workers": 2, "recipe.max_steps": 100, "recipe.selection.tracks": 2, "recipe.selection.final_tracks": 2,
        "recipe.selection.report_tracks": 2, "recipe.stage.0.steps": 600, "recipe.stage.0.tracks": 4, "recipe.stage.0.unroll": 10,
        "recipe.stage.0.batch": 4, "recipe.stage.0.epochs": 1, "agent.config.channels": 12, "agent.config.query_hidden": [16],
        "agent.config.answer_hidden": [16], "agent.config.units": 16, "agent.config.trunk": 16,
    }

    def learn(name, **arguments):
        return outcome(foveate.train("pong", preset="s3ta-small", set=sets, runs=tmp_path, name=name, **arguments))

    here = learn("here")
    assert any(line.get("event") == "generation" for line in here[0])
    with RayCluster() as cluster:
        assert learn("there", cluster=cluster) == here


def test_what_is_wrong_is_said(nodes, tmp_path):
    with pytest.raises(ValueError, match="0 workers"):
        RayCluster(workers=0)
    with pytest.raises(ValueError, match="not a setup"):
        RolloutWorker(b"nonsense")
    # Workers that cannot work say why, once.
    with RayCluster(workers=1) as cluster, pytest.raises(RuntimeError, match="not a setup"):
        cluster.open(b"nonsense")
    # So does a run, whose rollouts fail as they do here.
    with RayCluster(workers=1) as cluster, pytest.raises(foveate.FoveateError) as said:
        (tmp_path / "broken.py").write_text(BROKEN)
        foveate.train("gym:broken:Broken-v0", set={"videos": False}, runs=tmp_path, cluster=cluster, trust=True, options={"path": str(tmp_path)})
    assert "Broken" in str(said.value) or "broken" in str(said.value), said.value


BROKEN = '''
import gymnasium
import numpy as np


class Broken(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        raise RuntimeError("broken on purpose")


gymnasium.register("Broken-v0", Broken, max_episode_steps=10)
'''
