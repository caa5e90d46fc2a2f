"""The stubs and the reference say what there is."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import foveate
from foveate import _native

PACKAGE = Path(foveate.__file__).parent
SOURCES = Path(__file__).parents[1] / "python" / "foveate"


def described(nodes):
    """Names with the names of their parameters."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = [argument.arg for argument in node.args.posonlyargs + node.args.args]
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name] = described(node.body)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = None
    return found


def test_the_stubs_of_the_native_module():
    stubs = described(ast.parse((PACKAGE / "_native.pyi").read_text()).body)
    there = {name for name in vars(_native) if not name.startswith("_") or name == "__version__"}
    assert set(stubs) == there - {"_native"}
    for name, expected in stubs.items():
        native = getattr(_native, name)
        if isinstance(expected, list):
            assert list(inspect.signature(native).parameters) == expected, name
        elif isinstance(expected, dict):
            methods = {method for method in vars(native) if not method.startswith("_")}
            assert set(expected) - {"__init__"} == methods, name
            assert list(inspect.signature(native).parameters) == expected["__init__"][1:], name
            for method in methods:
                assert list(inspect.signature(getattr(native, method)).parameters) == expected[method], f"{name}.{method}"


def test_the_reference_is_that_of_the_sources():
    tool = Path(__file__).parents[3] / "python" / "api_reference.py"
    page = Path(__file__).parents[3] / "docs" / "python-api.md"
    made = subprocess.run([sys.executable, tool, SOURCES], capture_output=True, text=True, check=True).stdout
    assert page.read_text() == made, "run: python python/api_reference.py crates/foveate-py/python/foveate > docs/python-api.md"


def test_type_checkers_see_every_keyword():
    """No function takes any keyword at all, which a type checker would let pass."""
    for name in [*foveate.jobs.__all__, "load"]:
        one = getattr(foveate, name)
        if inspect.isfunction(one):
            kinds = {parameter.kind for parameter in inspect.signature(one).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds, name
