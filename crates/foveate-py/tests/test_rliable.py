"""Scores of runs as the arrays that rliable takes, and the share of a job that a bar of progress shows."""

import json
import sys
import types

import numpy as np
import pytest

import foveate
from foveate import rliable
from foveate.errors import OptionError

SET = {f"recipe.selection.{key}": 3 for key in ("tracks", "final_tracks", "report_tracks")}


def train(folder, seed, **keywords):
    sizes = {"steps": 12_000, "set": SET, "videos": False, "workers": 1}
    return foveate.train("cartpole-swingup-harder", runs=folder, name=f"seed-{seed}", seed=seed, **sizes, **keywords)


def test_scores_and_curves_of_runs(tmp_path):
    runs = [train(tmp_path, seed) for seed in (1, 2)]
    played = foveate.evaluate("cartpole-swingup-harder", episodes=3)
    results = {"trained": {"swingup": runs, "other": [str(runs[1].folder), 7.0]}, "champion": {"other": [1, np.float32(2)], "swingup": [played, 4]}}
    scores = rliable.scores(results)
    final = [np.mean(run_returns(run)) for run in runs]
    np.testing.assert_allclose(scores["trained"], [[final[0], final[1]], [final[1], 7]])
    np.testing.assert_allclose(scores["champion"], [[played.mean, 1], [4, 2]])
    scaled = rliable.scores(results, {"swingup": (10, 30), "other": (0, 2)})
    np.testing.assert_allclose(scaled["champion"], [[(played.mean - 10) / 20, 0.5], [-0.3, 1]])

    validated = [(int(row["steps"]), row["mean"]) for row in validations(runs[0])]
    first, last = validated[0], validated[-1]
    curves = rliable.curves({"trained": {"swingup": runs}}, [0, first[0], last[0] - 1, last[0], 10**9])["trained"]
    assert curves.shape == (2, 1, 5) and np.isnan(curves[:, :, 0]).all()
    before = [mean for step, mean in validated if step < last[0]][-1]
    np.testing.assert_allclose(curves[0, 0, 1:], [first[1], before, last[1], last[1]])


def lines(run):
    return [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]


def run_returns(run):
    return next(line["returns"] for line in lines(run) if line["event"] == "report")


def validations(run):
    return [line for line in lines(run) if line["event"] == "validation"]


@pytest.mark.parametrize(
    "results, keywords, said",
    [
        ({"a": {"x": [1, 2], "y": [1]}}, {}, r"results of 'a' have runs by task \{'x': 2, 'y': 1\}; give the tasks \['x', 'y'\]"),
        ({"a": {"x": [1]}, "b": {"y": [1]}}, {}, "results of 'b' have runs by task"),
        ({"a": {"x": []}}, {}, "at least one"),
        ({"a": {"x": [1]}}, {"scale": {"y": (0, 1)}}, "scale has no task 'x'"),
        ({"a": {"x": ["nowhere"]}}, {}, "nowhere has no summary.json; give the folder of a run that is finished"),
    ],
)
def test_what_is_no_matrix_is_said(results, keywords, said):
    with pytest.raises(OptionError, match=said):
        rliable.scores(results, **keywords)


def test_curves_are_of_runs():
    with pytest.raises(OptionError, match="curves are of runs; 3 is none"):
        rliable.curves({"a": {"x": [3]}}, [1])


def test_the_share_of_a_job_grows_to_one(tmp_path):
    from foveate._progress import Share

    jobs = {
        "evaluate": lambda callback: foveate.evaluate(episodes=3, max_steps=400, callback=callback),
        "stress": lambda callback: foveate.stress(variants="bar,color", episodes=1, max_steps=5, callback=callback),
        "explain": lambda callback: foveate.explain(episodes=1, decisions=1, untrained=0, max_steps=10, out=tmp_path / "report", callback=callback),
        "train": lambda callback: train(tmp_path, 3, callback=callback),
    }
    for name, job in jobs.items():
        share, told = Share(), []
        job(lambda event: told.append(share(event)))
        shares = [one for one in told if one is not None]
        assert shares == sorted(shares) and all(0 <= one <= 1 for one in shares), name
        assert name in ("evaluate", "stress") or shares[-1] == 1, name
    assert [Share()({"event": "episodes", "done": 1, "of": 4})] == [None], "of some batch of some job"


def test_a_notebook_shows_a_bar_and_words(monkeypatch):
    from foveate._progress import listener

    shown = []
    display = types.SimpleNamespace(update=lambda data, raw: shown.append(data))
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    module.display = types.ModuleType("IPython.display")
    module.display.display = lambda data, raw, display_id: shown.append(data) or display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)
    tell, end = listener(None, None)
    tell('{"event": "phase", "done": 0.25, "phase": "a < b", "left": 3}')
    tell('{"event": "phase", "done": 0.5, "phase": "c", "left": null}')
    end()
    assert shown[0]["text/html"] == '<progress max="1" value="0.250"></progress> 25 %, a &lt; b, about 3 s left'
    assert 'value="0.500"' in shown[1]["text/html"] and shown[2]["text/html"] == ""
