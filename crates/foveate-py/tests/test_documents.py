"""The Python of the documents runs: the blocks of one document in order, in one namespace, in an empty folder.

A block whose comment in the document says `<!-- not run: why -->` is compiled only. Jobs get the document's arguments, but fewer
episodes and steps.
"""

import functools
import os
import re
from pathlib import Path

import pytest

import foveate

ROOT = Path(os.environ.get("FOVEATE_SOURCES", Path(__file__).parents[3]))
BLOCK = re.compile(r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n+)?^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
#: Signatures, which `foveate/_native.pyi` and its tests hold to.
SIGNATURES = "docs/python-api.md"
#: All blocks that do not run, by document and reason.
NOT_RUN = [
    ("README.md", "needs a model"),
    ("docs/cluster.md", "needs Ray and a cluster"),
    ("docs/python.md", "trains for minutes"),
    ("docs/python.md", "needs Stable-Baselines3 and a model"),
    ("docs/python.md", "needs PyTorch"),
]
SMALL = {
    "evaluate": {"episodes": 2, "max_steps": 10},
    "stress": {"episodes": 2, "max_steps": 10},
    "explain": {"episodes": 1, "decisions": 1, "untrained": 0, "max_steps": 10},
    "watch": {"steps": 3},
}


def documents():
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {str(path.relative_to(ROOT)): list(BLOCK.finditer(path.read_text(encoding="utf-8"))) for path in paths}
    return {name: blocks for name, blocks in found.items() if blocks and name != SIGNATURES}


@pytest.mark.parametrize("name", documents())
def test_python_of_documents_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for job, sizes in SMALL.items():
        whole = getattr(foveate, job)
        monkeypatch.setattr(foveate, job, functools.partial(lambda whole, sizes, *args, **how: whole(*args, **{**how, **sizes}), whole, sizes))
    names = {}
    for block in documents()[name]:
        line = block.string.count("\n", 0, block.start("code"))
        code = compile("\n" * line + block["code"], name, "exec")
        if not block["why"]:
            exec(code, names)


def test_blocks_that_do_not_run_are_listed():
    assert [(name, block["why"]) for name, blocks in documents().items() for block in blocks if block["why"]] == NOT_RUN
    text = "".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert text.count("```python") == text.count("\n```python\n"), "a block that this test does not find"
