"""Scores of several runs as arrays for the library rliable.

``results`` is a dict by agent of dicts by task of lists: of each run its `Evaluation`, itself or its folder, or a mean return. Agents
have the same tasks, and the tasks of an agent as many runs; else `OptionError` is raised. ``scale`` has for each task the returns
that count as 0, such as that of random actions, and as 1.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from .errors import OptionError
from .jobs import Evaluation, Run

__all__ = ["curves", "scores"]

Result = Union[Evaluation, Run, str, "os.PathLike[str]", float]
Results = Mapping[str, Mapping[str, Sequence[Result]]]
Scale = Mapping[str, tuple[float, float]] | None


def scores(results: Results, scale: Scale = None) -> dict[str, npt.NDArray[np.float64]]:
    """For each agent ``[runs, tasks]``: mean returns, of finished runs those of the last evaluation."""
    return _arrays(results, scale, _score)


def curves(results: Results, steps: Sequence[int], scale: Scale = None) -> dict[str, npt.NDArray[np.float64]]:
    """For each agent ``[runs, tasks, steps]``: the mean return of the last validation until so many training steps; NaN before."""
    return _arrays(results, scale, lambda result: _curve(result, np.asarray(steps)))


def _arrays(results: Results, scale: Scale, of: Callable[[Any], Any]) -> dict[str, npt.NDArray[np.float64]]:
    tasks = list(next(iter(results.values()), {}))
    found = {}
    for agent, by_task in results.items():
        counts = {task: len(runs) for task, runs in by_task.items()}
        if set(counts) != set(tasks) or len(set(counts.values())) != 1 or 0 in counts.values():
            raise OptionError(f"results of {agent!r} have runs by task {counts}; give the tasks {tasks} the same number of runs, at least one")
        columns = []
        for task in tasks:
            if scale is not None and task not in scale:
                raise OptionError(f"scale has no task {task!r}; give its returns that count as 0 and as 1")
            low, high = (0.0, 1.0) if scale is None else scale[task]
            columns.append((np.array([of(run) for run in by_task[task]], np.float64) - low) / (high - low))
        found[agent] = np.stack(columns, axis=1)
    return found


def _folder(result: Any, file: str) -> Path:
    path = Path(os.fspath(result)) / file
    if not path.is_file():
        raise OptionError(f"{os.fspath(result)} has no {file}; give the folder of a run that is finished")
    return path


def _score(result: Result) -> float:
    if isinstance(result, Evaluation):
        return result.mean
    if isinstance(result, (str, os.PathLike)):
        return float(json.loads(_folder(result, "summary.json").read_text(encoding="utf-8"))["score"]["mean"])
    return float(result)


def _curve(result: Any, steps: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if not isinstance(result, (str, os.PathLike)):
        raise OptionError(f"curves are of runs; {result!r} is none")
    lines = map(json.loads, _folder(result, "log.jsonl").read_text(encoding="utf-8").splitlines())
    judged = [(line["steps"], line["mean"]) for line in lines if line.get("event") == "validation"]
    at = np.searchsorted([step for step, _ in judged], steps, side="right")
    return np.array([np.nan, *(mean for _, mean in judged)])[at]
