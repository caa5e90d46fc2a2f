"""Policies of LeRobot: pictures of cameras and the robot's state in, an action out, of a queue that is planned ahead.

An environment's ``pixels`` (one picture, or several by camera) and ``agent_pos`` become ``observation.image``,
``observation.images.CAMERA`` and ``observation.state``, as LeRobot names them; other names are given as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..jobs import Function


def fits(model: Any, known: set[str]) -> bool:
    return "lerobot.PreTrainedPolicy" in known or (callable(getattr(model, "select_action", None)) and callable(getattr(model, "reset", None)))


#: Attributes with actions that are planned, and what they were planned from.
_QUEUES = ("_queues", "_action_queue")


def function(model: Any) -> Function:
    import torch

    from ..jobs import Function

    parameter = next(iter(model.parameters()), None) if hasattr(model, "parameters") else None
    device = "cpu" if parameter is None else parameter.device

    def tensor(seen: Any) -> Any:
        array = np.asarray(seen)
        made = torch.as_tensor(array, device=device)
        if array.dtype == np.uint8 and array.ndim == 3:
            made = made.permute(2, 0, 1).float() / 255.0
        return made.float()[None]

    def batch(seen: Any) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for name, part in (seen if isinstance(seen, dict) else {"pixels": seen}).items():
            if isinstance(part, dict):
                named.update({f"observation.images.{camera}": tensor(picture) for camera, picture in part.items()})
            else:
                known = {"pixels": "observation.image", "agent_pos": "observation.state"}
                named[known.get(name, name if name.startswith("observation.") else f"observation.{name}")] = tensor(part)
        return named

    def act(seen: Any) -> Any:
        with torch.no_grad():
            return model.select_action(batch(seen))[0].float().cpu().numpy()

    def get_state() -> Any:
        return {name: getattr(model, name) for name in _QUEUES if hasattr(model, name)}

    def set_state(state: Any) -> None:
        for name, queue in state.items():
            setattr(model, name, queue)

    if hasattr(model, "eval"):
        model.eval()
    own = {"get_state": get_state, "set_state": set_state} if get_state() else {}
    module = model if hasattr(model, "named_parameters") else None
    return Function(act, reset=model.reset, module=module, name=type(model).__name__, **own)
