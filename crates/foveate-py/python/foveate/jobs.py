"""What the commands do: evaluate, test under changed worlds, explain, film, train.

Every function runs without the interpreter's lock, on all cores, and ends early on Ctrl-C. ``who`` is an `Agent`, what `load` takes, or
any function of yours from observation to action: see `evaluate`. ``world`` is the name of a world, such as ``"car-racing"``, an id
of Gymnasium that begins with ``foveate/``, or an environment of `foveate.envs`. ``of_world`` completes a name: ``picture``, ``variant``,
``shifts``, ``options`` and ``trust``, as for `load`.
"""

from __future__ import annotations

import html
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from . import _native
from .agents import Agent, load
from .envs import request_of
from .errors import OptionError

__all__ = ["Evaluation", "Film", "Report", "Run", "StressTable", "evaluate", "explain", "resume", "stress", "train", "watch"]

Policy = Callable[[Any], Any]
Who = Agent | str | os.PathLike[str] | Policy | None


def _table(rows: list[dict[str, Any]]) -> Any:
    """A pandas table of rows."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install pandas") from error
    return pandas.DataFrame(rows)


def _who(
    who: Who,
    world: Mapping[str, Any],
    attention: Policy | None,
    reset: Callable[[], Any] | None,
    workers: int,
) -> tuple[Any, int]:
    """What native code takes, and on how many threads it may run."""
    if isinstance(who, Agent):
        return who._native, workers
    if callable(who):
        if world["world"] is None:
            raise OptionError("a function does not say in which world it acts; name one: world=\"car-racing\"")
        name = getattr(who, "__qualname__", None) or type(who).__name__
        # A function within a function is called by its own name.
        name = str(name).rpartition("<locals>.")[2]
        # A function may keep a state of its own, so it plays one episode after the other.
        return (who, attention, reset, name), 1
    return _native.Agent(None if who is None else os.fspath(who), dict(world)), workers


@dataclass(frozen=True)
class Evaluation:
    """Episodes that were not trained on."""

    world: str
    weights: str
    #: ``[episodes]``: sums of rewards.
    returns: npt.NDArray[np.float64]
    #: ``[episodes]``: steps.
    lengths: npt.NDArray[np.int64]
    #: ``[episodes]``: whether the task ended the episode; otherwise a limit of steps did.
    terminated: npt.NDArray[np.bool_]
    #: Mean of the returns; of several games the mean of the games' means, which ``details["tasks"]`` has.
    mean: float
    #: Their standard deviation; ``None`` of one episode.
    std: float | None
    #: 95 % interval of the mean (bootstrap over episodes); ``None`` of one episode.
    interval: tuple[float, float] | None
    #: Everything that ``foveate eval --json`` prints.
    details: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        spread = "" if self.std is None else f" ± {self.std:.1f}"
        return f"{self.mean:.1f}{spread} over {len(self.returns)} episodes of {self.world}"

    def to_pandas(self) -> Any:
        """A table with a row for each episode."""
        rows = zip(self.returns, self.lengths, self.terminated, strict=True)
        return _table([{"return": r, "length": n, "terminated": t} for r, n, t in rows])


def evaluate(
    who: Who = None,
    world: str | gymnasium.Env[Any, Any] | None = None,
    *,
    episodes: int = 100,
    seed: int = 1,
    seeds: range | None = None,
    max_steps: int | None = None,
    workers: int = 0,
    draw_actions: bool = False,
    attention: Policy | None = None,
    reset: Callable[[], Any] | None = None,
    **of_world: Any,
) -> Evaluation:
    """Plays episodes and reports their returns: ``foveate eval``.

    Args:
        who: an `Agent`, what `load` takes, or a function from observation to action. A function gets the world's observation as an
            array (or a dict of arrays) that it may keep, and returns numbers, or the number of a choice.
        world: the world's name; a function needs one.
        episodes: how many, from the random stream of ``seed``.
        seeds: one episode for each of these seeds instead, as ``env.reset(seed=…)`` gives it.
        max_steps: truncates episodes.
        workers: threads, 0 for one per core; a function always runs in one.
        draw_actions: whether the agent draws its actions, as in training, instead of taking the most probable ones.
        attention: of a function: from observation to a map of what it attends to, ``[rows, columns]`` over a picture, or one number
            for each sensor.
        reset: of a function: called at the beginning of every episode.

    An exception of a function comes out as it is.
    """
    described = request_of(world, **of_world)
    native, workers = _who(who, described, attention, reset, workers)
    which, each = ((seed, episodes), False)
    if seeds is not None:
        if seeds.step != 1 or len(seeds) == 0:
            raise OptionError(f"seeds {seeds}; give a range of at least one seed, with step 1")
        which, each = (seeds.start, len(seeds)), True
    report = json.loads(_native.evaluate(native, described, which, each, workers, max_steps, draw_actions))
    interval = report.get("ci95")
    return Evaluation(
        world=report["env"],
        weights=report["weights"],
        returns=np.array(report["returns"]),
        lengths=np.array(report["lengths"]),
        terminated=np.array(report["terminated"]),
        mean=report["mean"],
        std=report.get("std"),
        interval=None if interval is None else tuple(interval),
        details=report,
    )


@dataclass(frozen=True)
class StressTable:
    """Scores in changed worlds, beside those in the unchanged one, on the same tracks."""

    #: Everything that ``foveate stress --json`` prints.
    details: dict[str, Any] = field(repr=False)
    #: The table as the command writes it, in Markdown.
    markdown: str = field(repr=False)
    #: Its picture, SVG.
    svg: str = field(repr=False)

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row of every agent."""
        for agent in self.details["agents"]:
            for row in agent["rows"]:
                yield {"agent": agent["name"], **row}

    def to_pandas(self) -> Any:
        """A table with a row for each agent and changed world."""
        return _table(list(self.rows))

    def __str__(self) -> str:
        return self.markdown

    def _repr_html_(self) -> str:
        return self.svg


def stress(
    who: Who | list[Who] = None,
    world: str | gymnasium.Env[Any, Any] | None = None,
    *,
    variants: str = "all",
    shift_rows: str = "none",
    severities: str = "1..5",
    at: int | None = None,
    episodes: int = 100,
    seed: int = 1,
    max_steps: int | None = None,
    workers: int = 0,
    reset: Callable[[], Any] | None = None,
    **of_world: Any,
) -> StressTable:
    """Evaluates agents or functions in changed worlds, on the same tracks: ``foveate stress``.

    ``variants`` and ``shift_rows`` name the rows (``"all"``, ``"none"``, or names with commas), ``severities`` the severities of
    shifts without one (1 to 5), ``at`` the step from which shifts apply. ``variant`` and ``shifts`` are active in every row.
    """
    described = request_of(world, **of_world)
    each = [_who(one, described, None, reset, workers) for one in (who if isinstance(who, list) else [who])]
    workers = min((threads for _, threads in each), key=lambda threads: threads or np.inf, default=0)
    rows = (variants, shift_rows, severities, at)
    agents = [native for native, _ in each]
    table, markdown, svg = _native.stress(agents, described, rows, seed, episodes, workers, max_steps)
    return StressTable(json.loads(table), markdown, svg)


@dataclass(frozen=True)
class Report:
    """A report on what an agent attends to and whether it acts on that; its page is ``folder / "index.html"``."""

    folder: Path
    #: The three lines that it begins with: question, answer (``yes``, ``no``, ``undecided``), the numbers that say so. Empty of an
    #: agent of which no parts can be swapped.
    verdict: list[dict[str, str]]
    #: Everything in ``report.json``.
    details: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        lines = [f"{line['question']} {line['answer']}: {line['why']}" for line in self.verdict]
        return "\n".join([*lines, str(self.folder / "index.html")])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(line['question'])}</th><td><b>{line['answer']}</b></td><td>{html.escape(line['why'])}</td></tr>"
            for line in self.verdict
        )
        page = html.escape(str(self.folder / "index.html"), quote=True)
        return f'<table>{rows}</table><a href="{page}">{page}</a>'


def explain(
    who: Who = None,
    world: str | gymnasium.Env[Any, Any] | None = None,
    *,
    out: str | os.PathLike[str] = "report",
    episodes: int = 20,
    decisions: int = 30,
    untrained: int = 20,
    seed: int = 1,
    max_steps: int | None = None,
    workers: int = 0,
    attention: Policy | None = None,
    reset: Callable[[], Any] | None = None,
    **of_world: Any,
) -> Report:
    """Writes the report of ``foveate explain`` into the folder ``out``.

    Of a function, ``attention`` is the claim that is tested; without it that is perturbation saliency. A function that keeps a state
    cannot be asked the same question twice: make it depend on its observation alone. It has no untrained ones to compare with.
    """
    described = request_of(world, **of_world)
    native, workers = _who(who, described, attention, reset, workers)
    size = (seed, episodes, decisions, untrained)
    report = json.loads(_native.explain(native, described, size, max_steps, workers, os.fspath(out)))
    swaps = report.get("swaps") or {}
    return Report(Path(out), swaps.get("verdict", []), report)


@dataclass(frozen=True)
class Film:
    """A film of an episode, or a picture of one step of it."""

    file: Path
    frames: int
    steps: int
    #: Sum of rewards over these steps.
    score: float
    #: Whether the world ended the episode within these steps.
    ended: bool

    def _repr_html_(self) -> str:
        import base64

        data = base64.b64encode(self.file.read_bytes()).decode()
        if self.file.suffix == ".mp4":
            return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'
        return f'<img src="data:image/{self.file.suffix[1:]};base64,{data}">'


def watch(
    who: Who = None,
    world: str | gymnasium.Env[Any, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    seed: int = 1,
    episode: int = 0,
    steps: int | None = None,
    size: tuple[int, int] | None = None,
    at: int | None = None,
    effects: bool = True,
    attention: Policy | None = None,
    reset: Callable[[], Any] | None = None,
    **of_world: Any,
) -> Film:
    """Records an episode with the agent's attention: ``foveate watch``.

    ``out`` ends in ``.mp4``, ``.gif`` or ``.png`` (the step ``at``); without it the film lies in a new temporary folder.
    ``effects`` frames what is attended to by its measured effect on the action, where that can be measured.
    """
    described = request_of(world, **of_world)
    native, _ = _who(who, described, attention, reset, 1)
    file = Path(tempfile.mkdtemp(prefix="foveate-"), "drive.mp4") if out is None else Path(out)
    made = _native.watch(native, described, (seed, episode), steps, size, at, effects, os.fspath(file))
    return Film(file, *made)


@dataclass(frozen=True)
class Run:
    """A folder of a training run."""

    folder: Path
    #: Whether it came to its end; ``foveate train --resume FOLDER`` goes on.
    finished: bool

    @property
    def best(self) -> Agent:
        """The agent with the best weights so far."""
        return load(self.folder)

    @property
    def history(self) -> dict[str, npt.NDArray[np.float64]]:
        """What the log says of every generation, as arrays of numbers by name; NaN where a generation has none."""
        lines = (self.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [row for row in map(json.loads, lines) if "generation" in row]
        names = dict.fromkeys(
            name for row in rows for name, value in row.items() if isinstance(value, (int, float)) and not isinstance(value, bool)
        )
        return {name: np.array([_number(row.get(name)) for row in rows]) for name in names}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("nan")


def train(
    world: str,
    *,
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002, the command's name
    runs: str | os.PathLike[str] = "runs",
    name: str | None = None,
    cluster: Any = None,
    **of_world: Any,
) -> Run:
    """Trains into a new folder below ``runs``: ``foveate train``.

    ``set`` changes keys of the configuration: ``{"seed": 3, "recipe.stage.0.sigma": 0.05}``. Ctrl-C stops safely. ``cluster`` runs the
    rollouts elsewhere: a `foveate.ray.RayCluster`; the run's files are the same, to the bit.
    """
    described = request_of(world, **of_world)
    changes = [f"{key}={json.dumps(value)}" for key, value in (set or {}).items()]
    config = None if config is None else os.fspath(config)
    folder, finished = _native.train(described, preset, config, changes, os.fspath(runs), name, cluster)
    return Run(Path(folder), finished)


def resume(folder: str | os.PathLike[str] | Run, *, workers: int | None = None, trust: bool = False, cluster: Any = None) -> Run:
    """Resumes a run to its end, to the bit as if it had not been stopped: ``foveate train --resume``.

    ``workers`` and ``cluster`` may differ from those before; ``trust`` is needed for worlds that run code of yours.
    """
    path = folder.folder if isinstance(folder, Run) else folder
    made, finished = _native.resume(os.fspath(path), workers, trust, cluster)
    return Run(Path(made), finished)
