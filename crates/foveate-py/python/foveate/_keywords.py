"""Errors about keywords that a function lacks."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def keywords(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function``, whose error about a keyword that it lacks names those that it has."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for name in kwargs:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f" did you mean {near[0]}?" if near else ""
                raise TypeError(f"{function.__name__}() has no keyword {name!r};{hint} it has: {', '.join(known)}")
        return function(*args, **kwargs)

    return called
