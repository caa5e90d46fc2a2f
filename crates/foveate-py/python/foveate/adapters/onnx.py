"""Sessions of onnxruntime: a batch of one observation in, actions or scores of choices out.

Inputs beyond the observation are a state: each is given what the output of its name returned, with ``_out`` in place of ``_in``, or
with ``new_`` or ``next_`` before it, and zeros at the beginning of an episode. The action is the output called ``action``, ``actions``,
``scores`` or ``logits``, else the first that is no state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError

if TYPE_CHECKING:
    from ..jobs import Function

_ACTIONS = ("action", "actions", "scores", "logits")
_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(uint8)": np.uint8, "tensor(int64)": np.int64,
          "tensor(int32)": np.int32, "tensor(bool)": np.bool_, "tensor(float16)": np.float16}


def fits(model: Any, known: set[str]) -> bool:
    return "onnxruntime.InferenceSession" in known


class _Asked:
    def __init__(self, session: Any) -> None:
        self.session = session
        outputs = [output.name for output in session.get_outputs()]
        #: From the name of a state that goes in to that of the one that comes out.
        self.states = {}
        self.seen = []
        for given in session.get_inputs():
            name = given.name
            after = [name.replace("_in", "_out"), f"new_{name}", f"next_{name}", f"{name}_out", f"{name}_next", f"{name}n"]
            found = next((other for other in after if other in outputs and other != name), name if name in outputs else None)
            if found is None:
                self.seen.append(given)
            else:
                self.states[name] = (given, found)
        actions = [name for name in outputs if name not in {found for _, found in self.states.values()}]
        if not self.seen or not actions:
            raise OptionError(f"the ONNX model has the inputs {[i.name for i in session.get_inputs()]} and the outputs {outputs}; an "
                              "observation goes in and an action comes out")
        self.action = next((name for name in _ACTIONS if name in actions), actions[0])
        self.reset()

    def reset(self) -> None:
        self.state = {}
        for name, (given, _) in self.states.items():
            shape = [size if isinstance(size, int) else 1 for size in given.shape]
            self.state[name] = np.zeros(shape, self._type(given))

    @staticmethod
    def _type(given: Any) -> Any:
        if given.type not in _TYPES:
            raise OptionError(f"the input {given.name!r} of the ONNX model is a {given.type}; {', '.join(_TYPES)} are given")
        return _TYPES[given.type]

    def get_state(self) -> Any:
        return self.state

    def set_state(self, state: Any) -> None:
        self.state = state

    def __call__(self, seen: Any) -> Any:
        parts = list(seen.items()) if isinstance(seen, dict) else [(self.seen[0].name, seen)]
        named = dict(parts)
        if len(self.seen) != len(parts) or (len(parts) > 1 and {given.name for given in self.seen} != set(named)):
            raise OptionError(
                f"the ONNX model takes {[given.name for given in self.seen]}; the observation has {[name for name, _ in parts]}"
            )
        fed, batch = dict(self.state), False
        for given in self.seen:
            array = np.asarray(named[given.name] if len(parts) > 1 else parts[0][1])
            batch = len(given.shape) != array.ndim
            fed[given.name] = (array[None] if batch else array).astype(self._type(given))
        outputs = {output.name for output in self.session.get_outputs()}
        wanted = [self.action, *(found for _, found in self.states.values() if found in outputs)]
        action, *states = self.session.run(wanted, fed)
        self.state = dict(zip(self.states, states))
        return action[0] if batch else action


def function(model: Any) -> Function:
    from ..jobs import Function

    asked = _Asked(model)
    if asked.states:
        return Function(asked, reset=asked.reset, get_state=asked.get_state, set_state=asked.set_state, name="the ONNX model")
    return Function(asked, name="the ONNX model")
