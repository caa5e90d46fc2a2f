"""Callbacks in the tools that they are for, with a real training of a second."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import foveate
from foveate import loggers

ROOT = Path(__file__).parents[4]
#: Few episodes to judge a training by.
SET = {f"recipe.selection.{key}": 3 for key in ("tracks", "final_tracks", "report_tracks")}
CURVES = {"return/best", "return/mean", "learning/loss", "validation/mean", "report/mean"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("DO_NOT_TRACK", "MLFLOW_DISABLE_TELEMETRY", "WANDB_SILENT"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


def train(callback, name="mine"):
    return foveate.train("cartpole-swingup-harder", steps=12_000, set=SET, runs="runs", name=name, videos=False, callback=callback)


class Enough(Exception):
    pass


def enough(event):
    """Ends a training by an error after its first generation."""
    if event["event"] == "generation":
        raise Enough


def test_a_run_of_weights_and_biases():
    log = loggers.Wandb(mode="offline", project="driving", dir=".")
    run = train(log)
    [file] = Path("wandb").glob("offline-run-*/*.wandb")
    mean = foveate.rliable.scores({"": {"": [run]}})[""][0, 0]
    texts = [*CURVES, "steps", "mine", "driving", "cartpole-swingup-harder", str(mean)]
    # Another process of theirs writes it.
    for _ in range(100):
        missing = [text for text in texts if text.encode() not in file.read_bytes()]
        if not missing:
            return
        time.sleep(0.1)
    raise AssertionError(f"{file} lacks {missing}")


def test_runs_of_mlflow_in_a_file_of_sqlite():
    from mlflow import MlflowClient

    log = loggers.Mlflow("driving", uri="sqlite:///mlflow.db", tags={"who": "test"})
    run = train(log)
    with pytest.raises(Enough):
        train([log, enough], name="failed")
    log({"event": "begins", "folder": "runs/stopped"})
    log({"event": "stopped", "folder": "runs/stopped"})
    client = MlflowClient("sqlite:///mlflow.db")
    found = {one.info.run_name: one for one in client.search_runs([client.get_experiment_by_name("driving").experiment_id])}
    status = {name: one.info.status for name, one in found.items()}
    # A training that a callback ends by an error may still say that it was stopped.
    assert status["mine"] == "FINISHED" and status["failed"] in ("FAILED", "KILLED") and status["stopped"] == "KILLED"
    mine = found["mine"].data
    assert CURVES <= set(mine.metrics) and mine.params["world"] == "cartpole-swingup-harder" and mine.tags["who"] == "test"
    steps = [one.step for one in client.get_metric_history(found["mine"].info.run_id, "return/mean")]
    assert steps == sorted({step for step in run.history["steps"] if step == step})


def test_a_bar_of_tqdm():
    from tqdm import tqdm

    out = io.StringIO()
    bars = []
    log = loggers.Tqdm(lambda **how: bars.append(tqdm(file=out, **how)) or bars[-1])
    train(log)
    assert bars[0].n == 100 and bars[0].disable, "it is at its end, and closed"
    assert "generation 1: mean" in out.getvalue() and "finished; the best weights are" in out.getvalue()
    foveate.evaluate(episodes=2, max_steps=5, callback=log)
    with pytest.raises(Enough):
        train([log, enough], name="failed")
    assert bars[-1].disable and 0 < bars[-1].n < 100
    assert loggers.Tqdm()._class.__name__ == "tqdm_asyncio" or loggers.Tqdm()._class.__module__ == "tqdm.auto"


def test_a_search_by_optuna():
    command = [sys.executable, ROOT / "examples/optuna_search.py", "--trials", "4", "--runs", "found"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "4 trials, " in done.stdout and " 0 pruned" not in done.stdout, done.stdout + done.stderr
    assert len(os.listdir("found")) == 4


def test_a_callback_that_is_none_is_refused():
    with pytest.raises(TypeError, match="give a function of an event, or a list of functions"):
        train([print, 3])
