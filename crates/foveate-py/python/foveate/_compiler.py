"""The process that compiles a model of MuJoCo: this interpreter, with the native module and nothing else of Python."""

from __future__ import annotations

import sys

from . import _native

# Its first argument is the native module's file. Ctrl-C ends the process, as it does not return to the interpreter.
_PROGRAM = """
import _signal, sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)
loader = ExtensionFileLoader("_native", sys.argv[1])
module = loader.create_module(ModuleSpec("_native", loader, origin=sys.argv[1]))
loader.exec_module(module)
module.compile_model(sys.argv[2:])
"""


def register() -> None:
    """Says how such a process starts; not in a program that hosts Python without being an interpreter."""
    file = _native.__file__
    if sys.executable and file:
        _native.compile_models_with([sys.executable, "-I", "-S", "-c", _PROGRAM, file])
