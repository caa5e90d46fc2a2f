"""Claims by the methods in use, of a policy of Stable-Baselines3 whose truth is known: `planted_sb3.py`, in a Python with PyTorch."""

import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import gymnasium
import pytest

import foveate
from foveate import claims
from foveate.errors import OptionError


@pytest.fixture
def planted(tmp_path):
    """Runs one part of `planted_sb3.py`."""
    python = sys.executable if importlib.util.find_spec("torch") else os.environ.get("FOVEATE_TORCH_PYTHON")
    if not python:
        pytest.skip("FOVEATE_TORCH_PYTHON names no Python with PyTorch and NumPy; run cargo xtask test")

    def run(what):
        # Debian's PyTorch comes without Gymnasium and Stable-Baselines3, which are pure Python.
        package, others = Path(foveate.__file__).parents[1], Path(gymnasium.__file__).parents[1]
        program = [python, Path(__file__).parent / "planted_sb3.py", what, tmp_path / "report", others]
        done = subprocess.run(program, env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("what, right, wrong", [("numbers-upper", "upper", "lower"), ("choices-lower", "lower", "upper")])
def test_a_planted_policy_of_stable_baselines3_is_judged_rightly(what, right, wrong, planted):
    """Two lights move over the picture, and it acts on one of them: the claim of this one is right, that of the other is not."""
    found = planted(what)
    answers = {(question, claim): answer for question, claim, answer in found["answers"]}
    assert answers["moves", None] == "yes", found
    assert answers["right", right] == "yes" and answers["right", wrong] == "no", found
    assert answers["right", "gradients"] != "no" and answers["right", "integrated"] != "no", found
    assert ("right", "grad_cam") in answers, found


def test_captums_methods_give_the_maps_of_ours(planted):
    """Its Saliency and IntegratedGradients; where Captum is missing, a stand-in. A policy that draws its actions is asked for the mean."""
    found = planted("captum")
    errors = found.pop("errors")
    assert found.pop("rows") == [3, 7], "a weight for each row"
    assert found.pop("parts") == {"numbers": [2], "picture": [4, 4]}
    assert len(found) == 5 and all(difference < 1e-5 for difference in found.values()), found
    assert "captum.attr has no method 'Salience'; it has Saliency," in errors["Salience"] and "no method 'os'" in errors["os"]
    assert errors["Fails"] == "Captum's Fails failed with ZeroDivisionError: division by zero"
    assert errors["option"].startswith("Captum's Saliency failed with TypeError: ") and "int is no torch module" in errors["model"]


def test_a_claim_says_that_it_needs_captum(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(OptionError, match=r'this claim needs Captum: pip install "foveate\[captum\]"'):
        claims.captum(3)
    monkeypatch.setitem(sys.modules, "captum", types.ModuleType("captum"))
    monkeypatch.setitem(sys.modules, "captum.attr", types.ModuleType("captum.attr"))
    with pytest.raises(OptionError, match="captum.attr has no method 'Saliency'; it has"):
        claims.captum(3, "Saliency")
