"""Sessions of onnxruntime: a batch of one observation in, an action or a score for each choice out.

Inputs beyond the observation are a state: each is given what the output of its name returned, with ``_out`` in place of ``_in``, or
with ``new_`` or ``next_`` before it, and zeros at the beginning of an episode. The action is the output called ``action``, ``actions``,
``scores`` or ``logits``, else the first that is no state. The command asks the ONNX model of a file by the same program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors import OptionError

if TYPE_CHECKING:
    from ..jobs import Function


def fits(model: Any, known: set[str]) -> bool:
    return "onnxruntime.InferenceSession" in known


def function(model: Any) -> Function:
    from ..jobs import Function

    program: dict[str, Any] = {}
    exec(compile(_native.ONNX_PROGRAM, "<foveate onnx>", "exec"), program)
    asked = program["OnnxModel"](model, np, OptionError)
    if asked.states:
        return Function(asked, reset=asked.reset, get_state=asked.get_state, set_state=asked.set_state, name="the ONNX model")
    return Function(asked, name="the ONNX model")
