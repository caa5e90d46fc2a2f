"""Trainings in Weights & Biases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._progress import Event
from ..errors import OptionError
from ._curves import curves


class Wandb:
    """A training as a run of Weights & Biases. ``init`` are keywords of ``wandb.init``, such as ``project`` and ``mode="offline"``; unless
    they say otherwise, the run has the name of the training's folder, and ``config`` is the event ``begins``.
    """

    def __init__(self, **init: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise OptionError(f'Wandb needs wandb, which cannot be imported ({error}): pip install "foveate[wandb]"') from error
        self._begin, self._init = wandb.init, init
        self._run: Any = None
        self._steps = 0

    def __call__(self, event: Event) -> None:
        kind = event["event"]
        if kind in ("begins", "resumes"):
            self._run = self._begin(**{"name": Path(event["folder"]).name, "config": event, **self._init})
            self._run.define_metric("*", step_metric="steps")
        if self._run is None:
            return
        self._steps = event.get("steps", self._steps) if kind != "begins" else 0
        if numbers := curves(event):
            self._run.log({**numbers, "steps": self._steps})
        if kind in ("finished", "stopped"):
            self._end(0)

    def close(self) -> None:
        """Ends a run that is not finished as failed."""
        self._end(1)

    def _end(self, code: int) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.finish(exit_code=code)
