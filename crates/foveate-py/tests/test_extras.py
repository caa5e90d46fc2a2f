"""The extras of the package: messages and documents name those that there are, and each installs what its message speaks of."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from foveate.errors import OptionError

tomllib = pytest.importorskip("tomllib")
ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
WORKER = ROOT / "crates/foveate-gym/src/worker"
PACKAGE = ROOT / "crates/foveate-py/python/foveate"
NAMED = re.compile(r"foveate\[([a-z][\w-]*)\]|'\.\[([a-z][\w-]*)\]'")


def names(requirements):
    return {re.split(r"[<>=!]", one)[0] for one in requirements}


def sources():
    for folder, kinds in [("crates", ("*.py", "*.rs")), ("docs", ("*.md", "*.ipynb")), ("examples", ("*.py",)), (".", ("README.md",))]:
        for kind in kinds:
            yield from sorted((ROOT / folder).rglob(kind) if folder != "." else [ROOT / kind])


def test_extras_that_are_named_exist_and_documents_list_them_all():
    named = {}
    for path in sources():
        if path != Path(__file__):
            for extra in NAMED.findall(path.read_text(encoding="utf-8")):
                named.setdefault("".join(extra), path)
    assert set(named) - set(EXTRAS) == set(), named
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`([\w-]+)`", page.partition("foveate[EXTRA]")[2].partition("\n\n")[0])) == set(EXTRAS)


def messages():
    """Python sources that say what to install."""
    found = [path for path in [*PACKAGE.rglob("*.py"), *WORKER.glob("*.py")] if "pip install" in path.read_text() or "pip(" in path.read_text()]
    assert len(found) > 12, found
    return found


def raised(path):
    """The texts of what a source raises, as they stand there."""
    text = path.read_text(encoding="utf-8")
    return [ast.get_source_segment(text, node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise)]


@pytest.mark.parametrize("path", messages(), ids=lambda path: path.name)
def test_a_message_about_a_missing_library_names_its_extra(path):
    """In the package; a worker's interpreter may have no package of ours: `pip` there chooses between both."""
    extra = worker()["EXTRAS"]
    for text in raised(path):
        if path.parent == WORKER:
            for packages in re.findall(r"pip\(\"([^\"]+)\"\)", text):
                assert packages.removeprefix("--upgrade ") in [*extra, "gymnasium", "numpy"], (path, packages)
        elif "pip install" in text:
            # Gymnasium comes with the package; a newer one is no extra.
            assert NAMED.search(text) or "gymnasium>=" in text, (path, text)


def worker():
    names = {"__name__": "a test"}
    text = (WORKER / "worker.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    kept = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) or getattr(node, "name", "") == "pip" or
            (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXTRAS")]
    exec(compile(ast.Module(kept, []), "worker.py", "exec"), names)
    return names


def test_the_worker_names_the_extra_where_the_package_is_installed(tmp_path, monkeypatch):
    there = worker()
    for packages, extra in there["EXTRAS"].items():
        assert names(packages.split()) == names(EXTRAS[extra])
    (tmp_path / "foveate-0.1.0.dist-info").mkdir()
    (tmp_path / "foveate-0.1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: foveate\nVersion: 0.1.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert there["pip"]("ale-py") == f'{sys.executable} -m pip install "foveate[atari]"'
    assert there["pip"]("numpy") == f"{sys.executable} -m pip install numpy"
    monkeypatch.setattr(sys, "path", [])
    assert there["pip"]("ale-py") == f"{sys.executable} -m pip install ale-py"


@pytest.mark.parametrize("name, library", [("Wandb", "wandb"), ("Mlflow", "mlflow"), ("Tqdm", "tqdm.auto")])
def test_a_logger_without_its_library_names_the_extra(name, library, monkeypatch):
    from foveate import loggers

    monkeypatch.setitem(sys.modules, library, None)
    extra = library.partition(".")[0]
    with pytest.raises(OptionError, match=rf'cannot be imported \(.+\): pip install "foveate\[{extra}\]"'):
        getattr(loggers, name)()


def test_importing_the_package_imports_no_library_of_an_extra():
    libraries = ["wandb", "mlflow", "tqdm", "ray", "pandas", "torch", "captum", "rliable", "onnxruntime", "stable_baselines3", "pygame"]
    program = f"import sys, foveate; print([one for one in {libraries} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done
