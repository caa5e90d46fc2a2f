"""Forks and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest

import foveate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes of Unix")


def in_a_child(work):
    """What `work` returns in a forked process, as text."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(work())
        except BaseException as error:  # noqa: BLE001, everything must come out
            said = f"{type(error).__name__}: {error}"
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    until = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            raise AssertionError("the forked process hangs")
        time.sleep(0.01)
    with os.fdopen(reads) as pipe:
        return pipe.read()


def drive(env):
    env.reset(seed=4)
    return sum(float(env.step(np.array([0.1, 0.5, 0.0], np.float32))[1]) for _ in range(20))


def drive_many(envs):
    envs.reset(seed=4)
    return sum(float(envs.step(np.full((2, 3), 0.3, np.float32))[1].sum()) for _ in range(20))


def test_a_fork_after_import():
    """Single worlds and agents work in the child, batches made before say that their threads are gone, new ones work."""
    env = gymnasium.make("foveate/CarRacing-v3", picture="fast")
    envs = gymnasium.make_vec("foveate/CarRacing-v3", num_envs=2, threads=2, picture="fast")
    expected, expected_many = drive(env), drive_many(envs)
    assert in_a_child(lambda: drive(env)) == str(expected)
    assert in_a_child(lambda: drive_many(envs)).startswith("ForkError: these worlds were made before this process was forked")

    def anew():
        made = gymnasium.make_vec("foveate/CarRacing-v3", num_envs=2, threads=2, picture="fast")
        return drive_many(made)

    assert in_a_child(anew) == str(expected_many)
    score = foveate.evaluate(episodes=2, max_steps=10, workers=2).mean
    assert in_a_child(lambda: foveate.evaluate(episodes=2, max_steps=10, workers=2).mean) == str(score)
    assert in_a_child(lambda: envs.close()) == "None", "closing what belongs to the other process does nothing"
    assert drive_many(envs) == expected_many, "the parent's are as before"


def listening():
    """A shell's background jobs ignore Ctrl-C, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(program, tmp_path, after):
    """Runs a program, interrupts it when `after` says so, and returns its exit code, output and errors."""
    child = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listening
    )
    try:
        until = time.monotonic() + 120
        while not after():
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        # Whatever failed, it does not run on.
        child.kill()
    return child.returncode, out, err


LONG = """
import foveate
from pathlib import Path
try:
    Path("begun").touch()
    foveate.{job}
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    "job",
    [
        "evaluate(episodes=100000, workers=2)",
        "evaluate(lambda observation: [0.0, 0.1, 0.0], 'car-racing', episodes=100000)",
        "stress(episodes=100000, workers=2)",
        "explain(episodes=150, workers=2)",
    ],
)
def test_ctrl_c_ends_a_job(job, tmp_path):
    begun = time.monotonic()
    code, out, err = interrupted(LONG.format(job=job), tmp_path, lambda: (tmp_path / "begun").exists() and time.monotonic() - begun > 2)
    assert (code, out) == (0, "interrupted\n"), err


def test_ctrl_c_stops_a_training_safely(tmp_path):
    """What is saved goes on; so it does after the command's Ctrl-C."""
    sets = "{'videos': False, 'workers': 2, 'env.picture': 'fast'}"
    log = tmp_path / "runs" / "mine" / "log.jsonl"
    job = f"train('car-racing', preset='evolution', set={sets}, name='mine')"
    code, out, err = interrupted(LONG.format(job=job), tmp_path, lambda: log.exists() and log.read_text().count("\n") > 1)
    assert (code, out) == (0, "interrupted\n"), err
    lines = log.read_text().count("\n")
    command = "from foveate._command import main; import sys; sys.argv = ['foveate', 'train', '--resume', 'runs/mine']; main()"
    code, out, err = interrupted(command, tmp_path, lambda: log.read_text().count("\n") > lines)
    assert code == 0 and "--resume" in out + err, (out, err)
    assert "KeyboardInterrupt" not in err
