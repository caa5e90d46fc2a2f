"""Trainings in MLflow."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from .._progress import Event
from ..errors import OptionError
from ._curves import curves


class Mlflow:
    """A training as a run of an experiment in MLflow, with the fields of the event ``begins`` as parameters.

    Args:
        experiment: name of the experiment, which is made if there is none.
        uri: the tracking server or store, such as ``"sqlite:///mlflow.db"``; MLflow's own setting if left out.
        tags: tags of the run.
    """

    def __init__(self, experiment: str = "foveate", *, uri: str | os.PathLike[str] | None = None, tags: dict[str, str] | None = None) -> None:
        try:
            from mlflow import MlflowClient
            from mlflow.entities import Metric
        except ImportError as error:
            raise OptionError(f'Mlflow needs MLflow, which cannot be imported ({error}): pip install "foveate[mlflow]"') from error
        self._client = MlflowClient(None if uri is None else os.fspath(uri))
        self._metric: Any = Metric
        self._experiment, self._tags = experiment, tags or {}
        self._run: str | None = None
        self._steps = 0

    def __call__(self, event: Event) -> None:
        kind = event["event"]
        if kind in ("begins", "resumes"):
            self._start(event)
        if self._run is None:
            return
        self._steps = event.get("steps", self._steps) if kind != "begins" else 0
        now = round(1000 * time.time())
        if numbers := [self._metric(name, value, now, self._steps) for name, value in curves(event).items()]:
            self._client.log_batch(self._run, metrics=numbers)
        if kind in ("finished", "stopped"):
            self._end("FINISHED" if kind == "finished" else "KILLED")

    def _start(self, event: Event) -> None:
        known = self._client.get_experiment_by_name(self._experiment)
        experiment: Any = self._client.create_experiment(self._experiment) if known is None else known.experiment_id
        run = self._client.create_run(experiment, run_name=Path(event["folder"]).name, tags=self._tags)
        self._run = run.info.run_id
        for name, value in event.items():
            self._client.log_param(self._run, name, value)

    def close(self) -> None:
        """Ends a run that is not finished as failed."""
        self._end("FAILED")

    def _end(self, status: str) -> None:
        run, self._run = self._run, None
        if run is not None:
            self._client.set_terminated(run, status)
