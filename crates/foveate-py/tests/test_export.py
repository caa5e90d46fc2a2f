"""Agents for other programs. That these decide the same, crates/foveate-cli/tests/suite/export.rs tests."""

import ast
import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import foveate


def test_pytorch_is_imported_when_a_module_is_used_and_not_before():
    script = (
        "import sys, foveate, foveate.torch\n"
        "assert 'torch' not in sys.modules and 'S3ta' in dir(foveate.torch)\n"
        "try:\n    foveate.torch.Mystery\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "module 'foveate.torch' has no attribute 'Mystery'\n"


@pytest.mark.parametrize(
    ("weights", "files"),
    [
        ("car-racing", {"README.md", "attention_agent.py", "weights.safetensors"}),
        ("cartpole-swingup-harder", {"README.md", "attention_neuron.py", "weights.safetensors"}),
        ("door-key-16x16", {"README.md", "relational.py", "weights.safetensors"}),
        ("pong-rewards", {"README.md", "s3ta.py", "weights.safetensors"}),
    ],
)
def test_a_module_needs_pytorch_and_nothing_else(weights, files, tmp_path):
    champion = Path(__file__).parents[3] / "champions" / f"{weights}.safetensors"
    written = foveate.export(champion, to="torch", out=tmp_path / "new" / "folder", trust=True)
    folder = Path(written)
    assert {file.name for file in folder.iterdir()} == files == set(written.details["files"])
    (module,) = folder.glob("*.py")
    nodes = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names == {"hashlib", "json", "math", "pathlib", "struct", "torch", "torch.nn"}
    back = foveate.load(folder / "weights.safetensors")
    ours = foveate.load(champion)
    assert json.dumps(written.details) and back.parameters.keys() == ours.parameters.keys()
    for name, values in ours.parameters.items():
        assert np.array_equal(back.parameters[name], values), name


def test_an_onnx_model_decides_as_the_agent(tmp_path):
    written = foveate.export("door-key-5x5", out=tmp_path / "model.onnx")
    assert written.details["outputs"][0]["name"] == "attention" and Path(written) == tmp_path / "model.onnx"
    agent, session = foveate.load("door-key-5x5"), onnxruntime.InferenceSession(tmp_path / "model.onnx")
    rng = np.random.default_rng(1)
    grid = (rng.random((7, 7, 20)) < 0.2).astype(np.uint8)
    attention, scores, choice = session.run(None, {"observation": grid})
    assert agent.act(grid) == choice == np.argmax(scores)
    assert np.abs(agent.attention.weights - attention).max() < 1e-5


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(foveate.FoveateError, match="is there already; move it away, or choose another place"):
        foveate.export(out=tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"
    with pytest.raises(foveate.FoveateError, match="unknown variant `jax`, expected one of `onnx`, `torch`, `hub`"):
        foveate.export(to="jax", out=tmp_path / "new")
    with pytest.raises(foveate.FoveateError, match="is no agent of a weight file; export weights"):
        foveate.export(lambda seen: [0, 0, 0], "car-racing", out=tmp_path / "new")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_model_of_a_hub_is_fetched_and_loaded(tmp_path, monkeypatch):
    """The package of the Hub is a stand-in; of a model the weight file alone is read."""
    made = foveate.export("cartpole-swingup-harder", to="hub", out=tmp_path / "card", episodes=2)
    assert made.details["files"] == ["model.safetensors", "config.json", "README.md"]
    (tmp_path / "link").symlink_to(tmp_path / "card" / "model.safetensors")
    asked = []

    def hf_hub_download(*args, **named):
        asked.append((args, named))
        if named["revision"] == "gone":
            raise OSError("404 Client Error:\nRevision Not Found")
        return str(tmp_path / "link")

    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(hf_hub_download=hf_hub_download))
    agent, own = foveate.load("hub:somebody/cart-pole"), foveate.load("cartpole-swingup-harder")
    assert all((agent.parameters[name] == own.parameters[name]).all() for name in own.parameters)
    foveate.load("hub:somebody/cart-pole@v1")
    name = ("somebody/cart-pole", "model.safetensors")
    assert asked == [(name, {"revision": None}), (name, {"revision": "v1"})]
    with pytest.raises(foveate.FoveateError, match="hub:somebody/cart-pole@gone cannot be fetched: 404 Client Error: Revision Not Found$"):
        foveate.load("hub:somebody/cart-pole@gone")
    for wrong in ["hub:", "hub:one", "hub:../..", "hub:a/b/c", "hub:a b/c"]:
        with pytest.raises(foveate.FoveateError, match="names no model; write it as in hub:owner/name"):
            foveate.load(wrong)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(foveate.FoveateError, match=r'pip install "foveate\[hub\]"'):
        foveate.load("hub:somebody/cart-pole")
