"""Modules of torch: called with a batch of one observation, they give actions, or scores of choices.

A module whose ``forward`` has a second argument ``state`` or ``hidden``, ``None`` by default, gets what it returned last. One with
``reset()`` is reset at the beginning of an episode; one with ``get_state()`` and ``set_state(state)`` is asked with its state. Of several
results the first is the action, and the last the state.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..jobs import Function


def fits(model: Any, known: set[str]) -> bool:
    return "torch.Module" in known


def function(model: Any) -> Function:
    import torch

    from ..jobs import Function

    parameter = next(iter(model.parameters()), None)
    device = "cpu" if parameter is None else parameter.device

    def tensor(seen: Any) -> Any:
        if isinstance(seen, dict):
            return {name: tensor(part) for name, part in seen.items()}
        if isinstance(seen, tuple):
            return tuple(tensor(part) for part in seen)
        array = np.asarray(seen)
        made = torch.as_tensor(array[None], device=device)
        return made.float() if array.dtype.kind == "f" else made

    state: list[Any] = [None]
    keeps = _keeps_state(model)

    def act(seen: Any) -> Any:
        with torch.no_grad():
            if keeps:
                given = model(tensor(seen), state[0])
                state[0] = given[-1]
            else:
                given = model(tensor(seen))
        while isinstance(given, (tuple, list)):
            given = given[0]
        if isinstance(given, dict):
            given = given.get("action", next(iter(given.values())))
        given = (given[0] if given.ndim > 0 else given).detach().cpu()
        return (given.float() if given.is_floating_point() else given).numpy()

    own = {name: getattr(model, name) for name in ("reset", "get_state", "set_state") if callable(getattr(model, name, None))}
    if ("get_state" in own) != ("set_state" in own):
        own = {name: hook for name, hook in own.items() if name == "reset"}
    if keeps:
        begin = own.get("reset")

        def reset() -> None:
            state[0] = None
            if begin is not None:
                begin()

        own = {"reset": reset, "get_state": lambda: state[0], "set_state": lambda kept: state.__setitem__(0, kept)}
    model.eval()
    return Function(act, module=model, name=type(model).__name__, **own)


def _keeps_state(model: Any) -> bool:
    """Whether ``forward`` takes and returns a state."""
    try:
        _, *further = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return False
    return bool(further) and further[0].name in ("state", "states", "hidden", "hx") and further[0].default is None
