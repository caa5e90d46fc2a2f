"""What a long job says while it runs: a line for people, and events for a function of the caller's."""

from __future__ import annotations

import html
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Event", "Listener", "Share", "describe", "listener"]

#: An event of a job; see `foveate.jobs`.
Event = dict[str, Any]
#: What is called with every event: a function, or several.
Listener = Callable[[Event], Any] | Sequence[Callable[[Event], Any]]


def listener(callback: Listener | None, progress: bool | None) -> tuple[Callable[[str], None] | None, Callable[[], None]]:
    """What native code calls with every event as text, and what is called at the end: it ends the line and closes the callbacks."""
    line = _line(progress)
    callbacks = [] if callback is None else [callback] if callable(callback) else list(callback)
    for one in callbacks:
        if not callable(one):
            raise TypeError(f"callback is {callback!r}; give a function of an event, or a list of functions")
    if not callbacks and line is None:
        return None, lambda: None

    share = Share()

    def tell(text: str) -> None:
        event = json.loads(text)
        done = share(event)
        if line is not None and (words := describe(event)):
            line.show(words, done)
        for one in callbacks:
            one(event)

    def end() -> None:
        if line is not None:
            line.end()
        for one in callbacks:
            if callable(close := getattr(one, "close", None)):
                close()

    return tell, end


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _left(event: Event) -> str:
    left = event.get("left")
    return "" if left is None else f", about {left:.0f} s left"


def describe(event: Event) -> str | None:
    """An event in words; ``None`` of one that a person need not see."""
    kind = event["event"]
    if kind == "begins":
        return f"training {event['agent']} on {event['world']}, {event['steps']:,} steps, seed {event['seed']}, into {event['folder']}"
    if kind == "resumes":
        return f"resuming {event['folder']} from generation {event['generation']}"
    if kind == "generation":
        return f"{100 * (Share()(event) or 0):.0f} %, generation {event['generation']}: mean {_number(event['mean'])}, best {_number(event['best'])}"
    if kind in ("validation", "evaluation", "final", "report"):
        return f"{kind}: mean {_number(event['mean'])} over {event.get('n', '?')} episodes"
    if kind == "cost":
        # A job of a moment needs no words.
        return None if event["seconds"] is not None and event["seconds"] < 5 else str(event["text"])
    if kind == "episodes":
        return f"episode {event['done']} of {event['of']}{_left(event)}"
    if kind == "row":
        return f"row {event['done'] + 1} of {event['of']}: {event['row']}{_left(event)}"
    if kind == "phase":
        return f"{100 * event['done']:.0f} %, {event['phase']}{_left(event)}"
    if kind == "frame":
        return f"frame {event['done']}{_left(event)}"
    if kind == "note":
        return str(event["text"])
    if kind == "finished":
        return f"finished; the best weights are {event['best']}"
    return None


class Share:
    """The share of a job that is done, from 0 to 1, by its events in their order; ``None`` as long as nothing tells."""

    def __init__(self) -> None:
        self._now: float | None = None
        self._of_episodes = False

    def __call__(self, event: Event) -> float | None:
        kind = event["event"]
        if kind == "cost":
            # Other jobs have several batches of episodes.
            self._of_episodes = event["job"] == "eval"
        elif "run_steps" in event:
            steps = event["run_steps"] + event["run_steps_left"]
            self._now = event["run_steps"] / steps if steps else 1.0
        elif kind == "phase":
            self._now = event["done"]
        elif kind == "row" or (kind == "episodes" and self._of_episodes):
            self._now = event["done"] / event["of"]
        elif kind == "finished":
            self._now = 1.0
        return self._now


class _Terminal:
    """One line that is written again and again."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, words: str, _done: float | None) -> None:
        words = words.replace("\n", " ")[: _columns() - 1]
        sys.stderr.write("\r" + words.ljust(self._width))
        sys.stderr.flush()
        self._width = len(words)

    def end(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class _Lines:
    """Whole lines, where none can be written again."""

    def show(self, words: str, _done: float | None) -> None:
        print(words.replace("\n", " "), file=sys.stderr, flush=True)

    def end(self) -> None:
        pass


class _Notebook:
    """One output of a cell, which changes: a bar and words."""

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, words: str, done: float | None) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        bar = "" if done is None else f'<progress max="1" value="{done:.3f}"></progress> '
        data = {"text/plain": words, "text/html": f"{bar}{html.escape(words)}"}
        if self._shown is None:
            self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)

    def end(self) -> None:
        if self._shown is not None:
            self._shown.update({"text/plain": "", "text/html": ""}, raw=True)


def _columns() -> int:
    try:
        return max(os.get_terminal_size(sys.stderr.fileno()).columns, 20)
    except (OSError, ValueError, AttributeError):
        return 80


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


def _line(progress: bool | None) -> _Terminal | _Lines | _Notebook | None:
    if progress is False:
        return None
    if _in_notebook():
        return _Notebook()
    stderr = sys.stderr
    if stderr is not None and hasattr(stderr, "isatty") and stderr.isatty():
        return _Terminal()
    # In a pipe or a file a line for each event is wanted by few.
    return _Lines() if progress else None
