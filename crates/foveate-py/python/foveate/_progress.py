"""What a long job says while it runs: a line for people, and events for a function of the caller's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Event", "Listener", "listener"]

#: An event of a job; see `foveate.jobs`.
Event = dict[str, Any]
Listener = Callable[[Event], Any]


def listener(callback: Listener | None, progress: bool | None) -> tuple[Callable[[str], None] | None, Callable[[], None]]:
    """What native code calls with every event as text, and what ends the line."""
    line = _line(progress)
    if callback is None and line is None:
        return None, lambda: None

    def tell(text: str) -> None:
        event = json.loads(text)
        if line is not None and (words := describe(event)):
            line.show(words)
        if callback is not None:
            callback(event)

    return tell, (lambda: None) if line is None else line.end


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
        all_steps = event["run_steps"] + event["run_steps_left"]
        share = 100 * event["run_steps"] / all_steps if all_steps else 100
        return f"{share:.0f} %, generation {event['generation']}: mean {_number(event['mean'])}, best {_number(event['best'])}"
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


class _Terminal:
    """One line that is written again and again."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, words: str) -> None:
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

    def show(self, words: str) -> None:
        print(words.replace("\n", " "), file=sys.stderr, flush=True)

    def end(self) -> None:
        pass


class _Notebook:
    """One output of a cell, which changes."""

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, words: str) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        data = {"text/plain": words}
        if self._shown is None:
            self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)

    def end(self) -> None:
        if self._shown is not None:
            self._shown.update({"text/plain": ""}, raw=True)


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
