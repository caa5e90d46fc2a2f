"""Models of other libraries as functions that Foveate asks: a file for each library, which imports it only if the model is of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import lerobot, onnx, stable_baselines3, torch

if TYPE_CHECKING:
    from ..jobs import Function

#: Asked in this order: each has ``fits(model)`` and ``function(model)``.
ADAPTERS = (stable_baselines3, lerobot, onnx, torch)


def classes(model: Any) -> set[str]:
    """``library.Class`` for every class of ``model``, with the first part of each module's name."""
    return {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(model).__mro__}


def adapted(model: Any) -> Function | None:
    """``model`` as a function; ``None`` if no adapter knows its kind."""
    known = classes(model)
    for adapter in ADAPTERS:
        if adapter.fits(model, known):
            return adapter.function(model)
    return None
