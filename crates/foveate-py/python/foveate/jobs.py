"""What the commands do: evaluate, test under changed worlds, explain, film, train.

Every function runs without the interpreter's lock, on all cores, and ends early on Ctrl-C. ``who`` is an `Agent`, what `load` takes, or
any function of yours from observation to action: see `evaluate`. ``world`` is the name of a world, such as ``"car-racing"``, an id
of Gymnasium that begins with ``foveate/``, or an environment of `foveate.envs`. ``picture``, ``variant``, ``shifts``, ``options`` and
``trust`` complete a name, as for `load`.

The keywords of a function that are the command's flags, their documentation, and its ``job`` are written by a test from the fields of
the crate's ``foveate::jobs``.

While it runs, a function shows a line of progress in a notebook and on a terminal (``progress=True`` shows it everywhere, ``False``
nowhere) and calls ``callback`` in the caller's thread with each event, a dict. Its ``"event"`` says what the other fields are:

==============  ================================================================================================
event           fields
==============  ================================================================================================
``begins``      `train`: ``agent``, ``world``, ``picture``, ``steps``, ``seed``, ``folder``
``resumes``     `resume`: ``folder``, ``generation``
``generation``  ``generation``, ``steps``, ``stage``, ``start``, ``best``, ``mean``, ``length``, ``norm``, ``sigma``; and ``measures``, if any
``validation``  ``generation``, ``steps``, ``n``, ``mean``, ``std``, ``ci95``, ``best`` (whether it is the best so far), ``tracks``
``evaluation``  the same of separate episodes, with ``seeds`` and ``returns``
``chosen``      ``stage``, ``generation``, ``mean``: the start with which a stage goes on
``final``       a finalist; ``report``: the last one on unseen episodes
``stopped``     ``folder``; ``finished``: ``folder``, ``best`` (the file)
``note``        ``text``: something that a person should know; ``cluster``: ``workers``
``cost``        before all but training: ``job``, ``text``, ``pieces``, ``workers``, ``seconds`` (``None`` as long as nothing tells)
``episodes``    ``done``, ``of``: episodes of the current batch
``row``         `stress`: ``done``, ``of``, ``agent``, ``row``: a row begins
``phase``       `explain`, `calibration`: ``phase``, ``done`` (share, 0 to 1)
``frame``       `watch`: ``done``: frames of the film
==============  ================================================================================================

Events after ``cost`` have ``left``, the seconds that are left, or ``None``. Lines of the log (``generation`` to ``report``) also have ``seconds``, ``cpu_seconds``, ``run_steps`` and ``run_steps_left``. An exception
of ``callback`` stops the job, safely as Ctrl-C does, and comes out.
"""

from __future__ import annotations

import contextlib
import copy
import html
import json
import math
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Union

import gymnasium
import numpy as np
import numpy.typing as npt

from . import _hosting, _native
from ._hosting import hosts
from ._keywords import keywords
from ._progress import Listener, listener
from .adapters import adapted
from .agents import Agent, load
from .envs import request_of
from .errors import OptionError

__all__ = [
    "Calibration", "Comparison", "Evaluation", "Exported", "Film", "Function", "Report", "Run", "StressTable", "batched",
    "calibration", "compare", "evaluate", "explain", "export", "resume",
    "stress", "train", "watch",
]

Policy = Callable[[Any], Any]
Who = Union[Agent, "Function", str, os.PathLike[str], Policy, Any, None]
Names = str | Iterable[str] | None
#: A world by its name, an environment, or a function that makes one.
World = str | gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]] | None


def _whole(name: str, number: Any) -> int | None:
    """``number`` if it is a whole number from 0 to 2^64 − 1 or ``None``; `OptionError` otherwise."""
    if number is None:
        return None
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)) or not 0 <= number < 2**64:
        raise OptionError(f"{name} is a whole number from 0 to {2**64 - 1}, not {number!r}")
    return int(number)


def _seeds(seeds: range | None) -> str | None:
    if seeds is None:
        return None
    if seeds.step != 1 or len(seeds) == 0:
        raise OptionError(f"seeds {seeds}; give a range of at least one seed, with step 1")
    return f"{seeds.start}..{seeds.stop}"


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _text(job: dict[str, Any]) -> str:
    """A job as native code takes it: JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{value!r} is of {type(value).__name__}, which no keyword takes")

    return json.dumps(job, default=plain)


def _described(
    world: str | gymnasium.Env[Any, Any] | None,
    picture: str | None,
    variant: Names,
    shifts: Names,
    options: Mapping[str, Any] | None,
    trust: bool,
) -> dict[str, Any]:
    given: dict[str, Any] = {"picture": picture, "variant": variant, "shifts": shifts, "options": options, "trust": trust or None}
    return request_of(world, **{name: value for name, value in given.items() if value is not None})


def _table(rows: list[dict[str, Any]]) -> Any:
    """A pandas table of rows."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('tables need pandas: pip install "foveate[tables]"') from error
    return pandas.DataFrame(rows)


@dataclass(frozen=True)
class Function:
    """A policy of yours, with what belongs to it."""

    #: From an observation to numbers; of a world of choices to the number of a choice, or a probability or score for each.
    act: Policy
    #: What is claimed to matter to it, as for `explain`.
    claims: Mapping[str, Policy] = field(default_factory=dict)
    #: Called at the beginning of every episode.
    reset: Callable[[], Any] | None = None
    #: Returns the state that its next answer depends on …
    get_state: Callable[[], Any] | None = None
    #: … and takes it back. States are copied deeply.
    set_state: Callable[[Any], Any] | None = None
    #: True if scores are logits. Otherwise probabilities and their logarithms are recognised; all else are values of choices.
    logits: bool = False
    #: The network that it asks: a torch module, or what has ``state_dict()`` and ``load_state_dict(state)`` of arrays. Reports compare
    #: it with networks of random weights, and put its own back.
    module: Any = None
    #: Its name in reports.
    name: str | None = None

    def __post_init__(self) -> None:
        for what, function in [("act", self.act), *self.claims.items()]:
            if not callable(function):
                raise TypeError(f"{what} is {function!r}; give a function of an observation")
        if (self.get_state is None) != (self.set_state is None):
            given, missing = ("get_state", "set_state") if self.set_state is None else ("set_state", "get_state")
            raise OptionError(f"{given} is given without {missing}; a state that is read must be set, too")
        if self.module is not None:
            _Weights(self.module)

    def _named(self) -> str:
        name = self.name or getattr(self.act, "__qualname__", None) or type(self.act).__name__
        # A function within a function is called by its own name.
        return str(name).rpartition("<locals>.")[2]

    def _state(self) -> tuple[Callable[[], Any], Callable[[Any], Any]] | None:
        get, put = self.get_state, self.set_state
        if get is None or put is None:
            return None

        # A state that is changed in place must not change those that were read before.
        def read() -> Any:
            state = get()
            try:
                return copy.deepcopy(state)
            except Exception as error:
                raise TypeError(f"get_state returned a state that cannot be copied: {error}") from error

        return read, lambda state: put(copy.deepcopy(state))


class _Weights:
    """The weights of a network as one row of numbers, which can be replaced and put back."""

    def __init__(self, module: Any) -> None:
        if callable(getattr(module, "named_parameters", None)):
            # Of torch: without buffers, which hold statistics, and shared weights once.
            own = {name: parameter.data for name, parameter in module.named_parameters()}
            self._own = {name: tensor for name, tensor in own.items() if tensor.is_floating_point()}
            arrays = [tensor.float().cpu().numpy() for tensor in self._own.values()]
            self._put: Callable[[list[Any]], Any] = self._copy
        elif callable(getattr(module, "state_dict", None)) and callable(getattr(module, "load_state_dict", None)):
            state = copy.deepcopy(dict(module.state_dict()))
            self._own = {name: np.asarray(array) for name, array in state.items() if np.asarray(array).dtype.kind == "f"}
            arrays = list(self._own.values())
            self._put = lambda parts: module.load_state_dict({**state, **dict(zip(self._own, parts))})
        else:
            raise TypeError(f"module is a {type(module).__name__}; give a torch module, or what has state_dict and load_state_dict")
        if not arrays:
            raise OptionError(f"module, a {type(module).__name__}, has no weights that are floating-point numbers")
        self._shapes = [array.shape for array in arrays]
        #: ``[weights]``: its own weights.
        self.flat = np.concatenate([np.asarray(array, np.float32).ravel() for array in arrays])
        self._exact = [tensor.clone() if hasattr(tensor, "clone") else tensor for tensor in self._own.values()]

    def tensors(self) -> list[tuple[str, list[int]]]:
        """The name and the shape of each part of `flat`."""
        return [(name, list(shape)) for name, shape in zip(self._own, self._shapes)]

    def set(self, flat: npt.NDArray[np.float32]) -> None:
        if np.array_equal(flat, self.flat):
            # Which single precision may have rounded.
            return self.restore()
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        self._put([part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), self._shapes)])

    def restore(self) -> None:
        self._put(self._exact)

    def _copy(self, parts: list[Any]) -> None:
        for tensor, part in zip(self._own.values(), parts):
            tensor.copy_(part if hasattr(part, "clone") else tensor.new_tensor(part))


@contextlib.contextmanager
def _restored(*who: Who) -> Iterator[None]:
    """Puts the weights of functions' networks back at the end."""
    weights = [_Weights(one.module) for one in who if isinstance(one, Function) and one.module is not None]
    try:
        yield
    finally:
        for one in weights:
            one.restore()


#: How often a report asks a function, beside playing, unless it is told otherwise.
QUESTIONS = 3000
#: Observations of a batch for a claim that takes batches.
_BATCH = 64


def batched(claim: Policy) -> Policy:
    """Says that a claim takes observations stacked along a new first axis, and returns a map for each."""
    claim.batched = True  # type: ignore[attr-defined]
    return claim


def _claims(claims: Mapping[str, Policy]) -> list[tuple[str, Callable[[list[Any]], list[Any]]]]:
    """Claims as native code asks them: each for a list of observations, at once."""

    hosted = _hosting.current()

    def of(name: str, claim: Policy) -> Callable[[list[Any]], list[Any]]:
        def asked(seen: list[Any]) -> list[Any]:
            if hosted is None:
                return maps_of(seen)
            return [hosted.map(one) for one in maps_of([hosted.original(one) for one in seen])]

        def maps_of(seen: list[Any]) -> list[Any]:
            if not getattr(claim, "batched", False):
                return [claim(one) for one in seen]
            maps: list[Any] = []
            for first in range(0, len(seen), _BATCH):
                some = seen[first : first + _BATCH]
                got = claim(_stacked(some))
                count = None if got is None else len(got)
                if count != len(some):
                    returned = "None" if count is None else f"{count} maps"
                    raise OptionError(f'the claim "{name}" returned {returned} for a batch of {len(some)} observations; it returns a map for each')
                maps.extend(got)
            return maps

        return asked

    return [(name, of(name, claim)) for name, claim in claims.items()]


def _stacked(seen: list[Any]) -> Any:
    """Observations along a new first axis, part by part."""
    if isinstance(seen[0], dict):
        return {part: _stacked([one[part] for one in seen]) for part in seen[0]}
    if isinstance(seen[0], tuple):
        return tuple(_stacked(list(part)) for part in zip(*seen))
    return np.stack(seen)


def _claims_of(who: Who) -> list[tuple[str, Callable[[list[Any]], list[Any]]]]:
    return _claims(who.claims) if isinstance(who, Function) else []


def _function(
    who: Who, claims: Mapping[str, Policy] | None = None, attention: Policy | None = None, reset: Callable[[], Any] | None = None
) -> Who:
    """``who`` with what the keywords of a report say of it."""
    if not isinstance(who, (Agent, Function)):
        who = adapted(who) or who
    given = dict(claims or {})
    if attention is not None:
        given = {"attention": attention, **given}
    if isinstance(who, Agent) or not (callable(who) or isinstance(who, Function)):
        if given:
            raise OptionError("claims are of functions; an agent of a file has its own attention")
        return who
    own = who if isinstance(who, Function) else Function(who)
    return replace(own, claims={**own.claims, **given}, reset=own.reset if reset is None else reset)


def _who(who: Who, job: dict[str, Any], attention: Policy | None, reset: Callable[[], Any] | None) -> Any:
    """What native code takes."""
    if isinstance(who, Agent):
        return who._native
    if not isinstance(who, Function):
        who = adapted(who) or who
    if callable(who):
        who = Function(who, reset=reset)
    if isinstance(who, Function):
        if job["world"]["world"] is None:
            raise OptionError("a function does not say in which world it acts; name one, or give an environment: world=\"car-racing\"")
        if "workers" in job:
            # A function may keep a state of its own, so it plays one episode after the other.
            job["workers"] = 1
        weights = None if who.module is None else _Weights(who.module)
        network = None if weights is None else (weights.tensors(), weights.flat, weights.set)
        hosted, act = _hosting.current(), who.act
        if hosted is not None:
            act = lambda seen: hosted.action(who.act(hosted.original(seen)))  # noqa: E731
            look = attention
            attention = None if look is None else lambda seen: hosted.map(look(hosted.original(seen)))
        return act, attention, who.reset, who._state(), who.logits, who._named(), network
    return _native.Agent(None if who is None else os.fspath(who), job["world"])


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

    def _said(self, number: float) -> str:
        """A return; small ones, as in grid worlds, with three digits behind the point."""
        return f"{number:.{3 if np.abs(self.returns).max() < 10 else 1}f}"

    def __str__(self) -> str:
        spread = "" if self.std is None else f" ± {self._said(self.std)}"
        return f"{self._said(self.mean)}{spread} over {len(self.returns)} episodes of {self.world}"

    def _repr_html_(self) -> str:
        said = self._said
        spread = "" if self.std is None else f" ± {said(self.std)}"
        interval = "" if self.interval is None else " … ".join(map(said, self.interval))
        rows = {
            "world": self.world, "agent": self.weights, "episodes": f"{len(self.returns):,}", "mean return": f"<b>{said(self.mean)}</b>{spread}",
            "95 % interval of the mean": interval, "lowest … highest": f"{said(self.returns.min())} … {said(self.returns.max())}",
            "mean length": f"{self.lengths.mean():.0f} steps",
        }
        escaped = {name: text if name == "mean return" else html.escape(text) for name, text in rows.items() if text}
        cells = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in escaped.items())
        return f"<table>{cells}</table>"

    def to_pandas(self) -> Any:
        """A table with a row for each episode."""
        rows = zip(self.returns, self.lengths, self.terminated, strict=True)
        return _table([{"return": r, "length": n, "terminated": t} for r, n, t in rows])


@keywords
@hosts
def evaluate(
    who: Who = None,
    world: World = None,
    *,
    episodes: int = 100,
    seed: int = 1,
    seeds: range | None = None,
    workers: int = 0,
    max_steps: int | None = None,
    draw_actions: bool = False,
    at_least: float | None = None,
    attention: Policy | None = None,
    reset: Callable[[], Any] | None = None,
    picture: str | None = None,
    variant: Names = None,
    shifts: Names = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> Evaluation:
    """Plays episodes and reports their returns: ``foveate eval``.

    Args:
        who: an `Agent`, what `load` takes, or a function from observation to action. A function gets the world's observation as an
            array (or a dict of arrays) that it may keep, and returns numbers, or the number of a choice. Models of
            Stable-Baselines3, torch, onnxruntime and LeRobot are functions, too.
        world: the world's name, an environment, or a function that makes one; a function needs one.
        episodes: number of episodes.
        seed: the seed of the world's random stream.
        seeds: one episode for each of these seeds instead, as ``env.reset(seed=…)`` gives it.
        workers: threads; 0 for one per core.
        max_steps: truncate episodes after this many steps.
        draw_actions: draw the agent's actions, as in training, instead of taking the most probable ones; agents whose actions have
            no probabilities act as before.
        at_least: count the episodes with at least this score.
        attention: of a function: from observation to a map of what it attends to, ``[rows, columns]`` over a picture, or one number
            for each sensor.
        reset: of a function: called at the beginning of every episode.

    An exception of a function comes out as it is.
    """
    job = {
        "episodes": _whole("episodes", episodes),
        "seed": _whole("seed", seed),
        "seeds": _seeds(seeds),
        "workers": _whole("workers", workers),
        "max_steps": _whole("max_steps", max_steps),
        "draw_actions": draw_actions,
        "at_least": at_least,
        "world": _described(world, picture, variant, shifts, options, trust),
    }
    native = _who(who, job, attention, reset)
    tell, end = listener(callback, progress)
    try:
        report = json.loads(_native.evaluate(native, _text(job), tell))
    finally:
        end()
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
    #: What failed, in one line; ``None`` when every row came to its end. Such a row has ``failed`` and the error, ``skipped``.
    failed: str | None = None

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
        # The picture leaves out shifts, which have severities.
        heads = ("agent", "world", "mean", "change", "95 % interval", "p, Holm")
        cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}</tr>" for row in self.rows)
        return f"{self.svg}<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{cells}</table>"


def _cells(row: dict[str, Any]) -> list[str]:
    """A row of a table of `stress` as texts; empty where it has no number."""
    change = row.get("change") or {}
    mean, interval, p = row.get("mean"), change.get("ci95"), change.get("p_holm")
    return [
        row["agent"], row["name"], "n/a" if mean is None else f"{mean:.4g}", f"{change['difference']:+.4g}" if change else "",
        "" if interval is None else f"{interval[0]:+.4g} … {interval[1]:+.4g}", "" if p is None else f"{p:.4f}",
    ]


@keywords
@hosts
def stress(
    who: Who | list[Who] = None,
    world: World = None,
    *,
    episodes: int = 100,
    seed: int = 1,
    variants: str = "all",
    shift_rows: str = "none",
    severities: str | None = None,
    at: int | None = None,
    workers: int = 0,
    max_steps: int | None = None,
    out: str | os.PathLike[str] | None = None,
    reset: Callable[[], Any] | None = None,
    picture: str | None = None,
    variant: Names = None,
    shifts: Names = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> StressTable:
    """Evaluates agents or functions in changed worlds, on the same tracks: ``foveate stress``.

    Args:
        who: as for `evaluate`, or several of these.
        episodes: episodes per row.
        seed: the seed of the world's random stream.
        variants: variants of the world, separated by commas, a row each; all or none.
        shift_rows: shifts and sets of shifts, separated by commas; all or none.
        severities: severities of shifts that have none, as in 1..5 or 1,3,5.
        at: switch the shifts on at this step of every episode.
        workers: threads; 0 for one per core.
        max_steps: truncate episodes after this many steps.
        out: a folder for table.md, table.csv, table.json, table.svg, severities.svg, and the finished rows.
        variant, shifts: active in every row.

    A row that ends with an error has that error in the table, and a `RuntimeWarning` says so; if no row has a result, the first error
    is raised.
    """
    job = {
        "episodes": _whole("episodes", episodes),
        "seed": _whole("seed", seed),
        "variant_rows": variants,
        "shift_rows": shift_rows,
        "severities": severities,
        "at": _whole("at", at),
        "workers": _whole("workers", workers),
        "max_steps": _whole("max_steps", max_steps),
        "out": _path(out),
        "world": _described(world, picture, variant, shifts, options, trust),
    }
    agents = [_who(one, job, None, reset) for one in (who if isinstance(who, list) else [who])]
    tell, end = listener(callback, progress)
    try:
        table, markdown, svg, failed = _native.stress(agents, _text(job), tell)
    finally:
        end()
    if failed is not None:
        warnings.warn(failed, RuntimeWarning, stacklevel=3)
    return StressTable(json.loads(table), markdown, svg, failed)


@dataclass(frozen=True)
class Report:
    """A report on what an agent attends to and whether it acts on that; its page is ``folder / "index.html"``."""

    folder: Path
    #: The questions that it answers: key, claim, the question in words (``asks``), answer (``yes``, ``no``, ``undecided``), number
    #: with interval, why. Empty of an agent of which no parts can be swapped.
    verdict: list[dict[str, Any]]
    #: Everything in ``report.json``.
    details: dict[str, Any] = field(repr=False)

    @staticmethod
    def _words(line: dict[str, Any]) -> str:
        return line["asks"] if line["claim"] is None else f"{line['claim']}: {line['asks']}"

    def __str__(self) -> str:
        lines = [f"{self._words(line)} {line['answer']}: {line['why']}" for line in self.verdict]
        return "\n".join([*lines, str(self.folder / "index.html")])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(self._words(line))}</th><td><b>{line['answer']}</b></td><td>{html.escape(line['why'])}</td></tr>"
            for line in self.verdict
        )
        page = html.escape(str(self.folder / "index.html"), quote=True)
        return f'<table>{rows}</table><a href="{page}">{page}</a>'


@keywords
@hosts
def explain(
    who: Who = None,
    world: World = None,
    *,
    untrained: int = 20,
    seed: int = 1,
    episodes: int = 20,
    decisions: int = 30,
    max_steps: int | None = None,
    workers: int = 0,
    out: str | os.PathLike[str] = "report",
    attention: Policy | None = None,
    claims: Mapping[str, Policy] | None = None,
    questions: int | None = QUESTIONS,
    reset: Callable[[], Any] | None = None,
    picture: str | None = None,
    variant: Names = None,
    shifts: Names = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> Report:
    """Writes the report of ``foveate explain`` into the folder ``out``.

    Args:
        who, world, reset: as for `evaluate`.
        untrained: untrained agents of each kind that go through the same measurement.
        seed: the seed of the world's random stream; its first episode is the one shown.
        episodes: number of episodes.
        decisions: tested decisions per episode.
        max_steps: truncate episodes after this many steps.
        workers: threads; 0 for one per core.
        out: the folder to write; an older report there is replaced.

        claims: of a function: what is claimed to matter, by name: functions from an observation to weights, ``[rows, columns]`` of a picture
            or grid, or one for each number; their magnitude counts. They are asked at the tested decisions alone.
        attention: of a function: one such claim.
        questions: of a function: how often it may be asked beside playing; ``None``: as often as the method wants.

    A function is asked the same questions twice first: if its answers differ, the report says so, and a `Function` may have its state.
    With a ``module``, its first claim is compared with untrained networks, beside ``questions``.
    """
    job = {
        "untrained": _whole("untrained", untrained),
        "seed": _whole("seed", seed),
        "episodes": _whole("episodes", episodes),
        "decisions": _whole("decisions", decisions),
        "max_steps": _whole("max_steps", max_steps),
        "workers": _whole("workers", workers),
        "out": _path(out),
        "world": _described(world, picture, variant, shifts, options, trust),
    }
    own = _function(who, claims, attention, reset)
    native, asked = _who(own, job, None, None), _whole("questions", questions)
    tell, end = listener(callback, progress)
    try:
        with _restored(own):
            report = json.loads(_native.explain(native, _claims_of(own), asked, _text(job), tell))
    finally:
        end()
    swaps = report.get("swaps") or {}
    return Report(Path(out), swaps.get("verdict", []), report)


@dataclass(frozen=True)
class Comparison:
    """What several agents or functions act on, side by side; its page is ``folder / "index.html"``."""

    folder: Path
    #: What ``foveate explain --compare`` prints.
    table: str = field(repr=False)
    #: Everything in ``report.json``.
    details: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        page = html.escape(str(self.folder / "index.html"), quote=True)
        return f'<pre>{html.escape(self.table)}</pre><a href="{page}">{page}</a>'


@keywords
@hosts
def compare(
    who: Mapping[str, Who],
    world: World = None,
    *,
    untrained: int = 20,
    seed: int = 1,
    episodes: int = 20,
    decisions: int = 30,
    max_steps: int | None = None,
    workers: int = 0,
    out: str | os.PathLike[str] = "compared",
    questions: int | None = QUESTIONS,
    picture: str | None = None,
    variant: Names = None,
    shifts: Names = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> Comparison:
    """Compares what agents and functions act on: ``foveate explain --compare``.

    Args:
        who: agents and functions by name; `Function` has claims.
        shifts: each is a row of its own.

    All else is as for `explain`.
    """
    job = {
        "untrained": _whole("untrained", untrained),
        "seed": _whole("seed", seed),
        "episodes": _whole("episodes", episodes),
        "decisions": _whole("decisions", decisions),
        "max_steps": _whole("max_steps", max_steps),
        "workers": _whole("workers", workers),
        "out": _path(out),
        "world": _described(world, picture, variant, shifts, options, trust),
    }
    own = {str(name): _function(one) for name, one in who.items()}
    natives = [(name, _who(one, job, None, None), _claims_of(one)) for name, one in own.items()]
    asked = _whole("questions", questions)
    tell, end = listener(callback, progress)
    try:
        with _restored(*own.values()):
            found, table = _native.compare(natives, asked, _text(job), tell)
    finally:
        end()
    return Comparison(Path(out), table, json.loads(found))


@dataclass(frozen=True)
class Calibration:
    """The questions of `explain`, asked about policies whose answers are known."""

    #: A row for each case, question and seed: ``case``, ``question``, ``expected``, ``given``, ``seed``, ``number``.
    cases: list[dict[str, Any]]
    #: Counts of all answers: ``asked``, ``right``, ``undecided``, ``wrong``, and ``share_right``, ``share_wrong``.
    summary: dict[str, Any]
    #: Everything that ``foveate explain --calibrate --json`` prints.
    details: dict[str, Any] = field(repr=False)
    _text: str = field(repr=False)

    def __str__(self) -> str:
        return self._text

    def to_pandas(self) -> Any:
        """The cases as a pandas table."""
        return _table(self.cases)


@keywords
def calibration(
    *,
    episodes: int = 20,
    seeds: int = 1,
    seed: int = 1,
    workers: int = 0,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> Calibration:
    """Asks the questions of `explain` about policies whose answers are known: ``foveate explain --calibrate``.

    Args:
        episodes: episodes of each policy; with fewer than 5 nothing is decided.
        seeds: how often every policy is asked about, each time with another seed.
        seed: the first of these seeds.
        workers: threads; 0 for one per core.
    """
    job = {
        "seed": _whole("seed", seed),
        "seeds": _whole("seeds", seeds),
        "episodes": _whole("episodes", episodes),
        "workers": _whole("workers", workers),
    }
    tell, end = listener(callback, progress)
    try:
        details, text = _native.calibrate(_text(job), tell)
    finally:
        end()
    details = json.loads(details)
    return Calibration(details["cases"], details["summary"], details, text)


#: A film is wider than the cell of a notebook.
_FITS = "max-width: 100%; height: auto"


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
            return f'<video controls loop style="{_FITS}" src="data:video/mp4;base64,{data}"></video>'
        return f'<img style="{_FITS}" src="data:image/{self.file.suffix[1:]};base64,{data}">'


@keywords
@hosts
def watch(
    who: Who = None,
    world: World = None,
    *,
    seed: int = 1,
    episode: int = 0,
    steps: int | None = None,
    size: tuple[int, int] | None = None,
    out: str | os.PathLike[str] | None = None,
    at: int | None = None,
    effects: bool = True,
    attention: Policy | None = None,
    reset: Callable[[], Any] | None = None,
    picture: str | None = None,
    variant: Names = None,
    shifts: Names = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> Film:
    """Records an episode with the agent's attention: ``foveate watch``.

    Args:
        who, world, attention, reset: as for `evaluate`.
        seed: the seed of the world's random stream.
        episode: number of the episode in that stream; 0 is the first.
        steps: steps to record.
        size: width and height in pixels, even.
        out: the file; ``.mp4`` and ``.gif`` are videos, ``.png`` is a picture of one step.
        at: for a picture: the step it shows; 0 is the reset.
        effects: frame what the agent attends to by its measured effect on the action, where that can be measured.

    Without ``out`` the film lies in a new temporary folder.
    """
    job = {
        "seed": _whole("seed", seed),
        "episode": _whole("episode", episode),
        "steps": _whole("steps", steps),
        "size": size,
        "out": _path(out),
        "at": _whole("at", at),
        "effects": effects,
        "world": _described(world, picture, variant, shifts, options, trust),
    }
    native = _who(who, job, attention, reset)
    file = Path(tempfile.mkdtemp(prefix="foveate-"), "drive.mp4") if out is None else Path(out)
    job["out"] = os.fspath(file)
    tell, end = listener(callback, progress)
    try:
        made = _native.watch(native, _text(job), tell)
    finally:
        end()
    return Film(file, *made)


@dataclass(frozen=True)
class Exported:
    """An agent as a model for other programs."""

    out: Path
    #: What ``foveate export --json`` prints.
    details: dict[str, Any]

    def __fspath__(self) -> str:
        """Its file or folder."""
        return os.fspath(self.out)


@keywords
def export(
    who: Who = None,
    world: str | gymnasium.Env[Any, Any] | None = None,
    *,
    to: str = "onnx",
    out: str | os.PathLike[str] | None = None,
    episodes: int = 100,
    picture: str | None = None,
    variant: Names = None,
    shifts: Names = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Exported:
    """Writes an agent of Foveate as a model for other programs: ``foveate export``.

    Args:
        who, world: as for `evaluate`.
        to: ``"onnx"``, a model in one file, ``"torch"``, a folder with a module of `foveate.torch`, its weights and a README, or ``"hub"``, a
            folder as model hubs keep it, which `load` takes.
        out: what to create; nothing may be there.
        episodes: of a hub's folder: episodes of the evaluation on its card.
    """
    job = {
        "to": to,
        "out": _path(out),
        "episodes": _whole("episodes", episodes),
        "world": _described(world, picture, variant, shifts, options, trust),
    }
    details = json.loads(_native.export(_who(who, job, None, None), _text(job)))
    return Exported(Path(details["out"]), details)


@dataclass(frozen=True)
class Run:
    """A folder of a training run."""

    folder: Path
    #: Whether it came to its end; ``foveate train --resume FOLDER`` goes on.
    finished: bool

    def __fspath__(self) -> str:
        """Its folder: a run may stand wherever one may be named."""
        return os.fspath(self.folder)

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


@keywords
def train(
    world: str,
    *,
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    steps: int | None = None,
    init: str | None = None,
    teacher: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002, the command's name
    seed: int | None = None,
    workers: int | None = None,
    videos: bool | None = None,
    name: str | None = None,
    runs: str | os.PathLike[str] = "runs",
    cluster: Any = None,
    picture: str | None = None,
    variant: Names = None,
    shifts: Names = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> Run:
    """Trains into a new folder below ``runs``: ``foveate train``.

    Args:
        world: its name.
        preset: the preset to start from; other settings override it.
        config: a TOML file with what differs from the preset.
        steps: training steps of the whole run; the stages of a configuration keep their shares.
        init: what the weights begin with: a weight file, a run or a champion, or ``torch``, ``he`` or ``zeros``.
        teacher: the teacher, for presets that learn from one.
        set: keys of the configuration with their values: ``{"recipe.stage.0.sigma": 0.05}``. A value is a bool, a number, a string, or
            a list or dict of these.
        seed: seed of all randomness of the run.
        workers: threads; 0 for one per core.
        videos: make videos of evaluations.
        name: name of the run.
        runs: the folder of all runs.
        cluster: runs the rollouts elsewhere: a `foveate.ray.RayCluster`; the run's files are the same, to the bit.

    Ctrl-C stops safely; `resume` goes on.
    """
    for key, value in {"seed": seed, "workers": workers, "videos": videos}.items():
        if value is not None and key in (set or {}):
            raise OptionError(f"{key} is given twice: {key}={value!r} and set={{{key!r}: …}}; leave one out")
    job = {
        "preset": preset,
        "config": _path(config),
        "steps": _whole("steps", steps),
        "init": init,
        "teacher": teacher,
        "set": [f"{key}={_toml(value, key)}" for key, value in (set or {}).items()],
        "seed": _whole("seed", seed),
        "workers": _whole("workers", workers),
        "videos": videos,
        "name": name,
        "runs": _path(runs),
        "world": _described(world, picture, variant, shifts, options, trust),
    }
    tell, end = listener(callback, progress)
    try:
        folder, finished = _native.train(_text(job), cluster, tell)
    finally:
        end()
    return Run(Path(folder), finished)


def _toml(value: Any, key: str) -> str:
    """A value of a configuration as TOML writes it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None:
        raise OptionError(f"set: {key} is None, which no configuration can say; leave the key out to keep the preset's value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OptionError(f"set: {key} is {value}; whole numbers have 64 bits, with their sign")
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)  # inf, -inf and nan are words of TOML, too
    if isinstance(value, (str, os.PathLike)):
        # A string of JSON is one of TOML, but for one control character.
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(name), key)} = {_toml(one, f'{key}.{name}')}" for name, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(one, key) for one in value) + "]"
    raise OptionError(f"set: {key} is of {type(value).__name__}; give a bool, a number, a string, or a list or dict of these")


@keywords
def resume(
    folder: str | os.PathLike[str] | Run,
    *,
    workers: int | None = None,
    trust: bool = False,
    allow_changes: bool = False,
    cluster: Any = None,
    progress: bool | None = None,
    callback: Listener | None = None,
) -> Run:
    """Resumes a run to its end, to the bit as if it had not been stopped: ``foveate train --resume``.

    ``workers`` and ``cluster`` may differ from those before; ``trust`` is needed for worlds that run code of yours, ``allow_changes``
    when configuration, build or log changed.
    """
    workers = _whole("workers", workers)
    path = folder.folder if isinstance(folder, Run) else folder
    tell, end = listener(callback, progress)
    try:
        made, finished = _native.resume(os.fspath(path), workers, trust, allow_changes, cluster, tell)
    finally:
        end()
    return Run(Path(made), finished)
