"""What a release is made of: notes, the stable ABI, and a source distribution with all that the crates compile in."""

import importlib.util
import re
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")
ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RELEASE = (ROOT / ".github/workflows/release.yml").read_text()


def notes(*arguments):
    spec = importlib.util.spec_from_file_location("release_notes", ROOT / "python/release_notes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.notes(*arguments)


def test_notes_are_the_section_of_the_version():
    manifest = 'version = "0.2.0"\nserde = { version = "1" }\n'
    log = "# Changelog\n\n## Unreleased\n\n## 0.2.0\n\nNew.\n\n### Parts\n\n* a\n\n## 0.1.0\n\nFirst.\n"
    assert notes("v0.2.0", log, manifest) == "New.\n\n### Parts\n\n* a"
    for tag, text, said in [
        ("v0.1.0", log, r"the tag is v0.1.0, the workspace in Cargo.toml has version 0.2.0"),
        ("v0.2.0", log.replace("## 0.2.0", "## 0.3.0"), "no section about 0.2.0"),
        ("v0.2.0", log.replace("## Unreleased\n", "## Unreleased\n\n* b\n"), "changes under Unreleased"),
    ]:
        with pytest.raises(SystemExit, match=said):
            notes(tag, text, manifest)


def test_the_change_log_has_a_section_about_the_version():
    log, manifest = (ROOT / "CHANGELOG.md").read_text(), (ROOT / "Cargo.toml").read_text()
    tag = "v" + re.search(r'^version = "([^"]+)"', manifest, re.MULTILINE)[1]
    assert len(notes(tag, re.sub(r"(?s)^## Unreleased\n.*?(?=^## )", "", log, flags=re.MULTILINE), manifest)) > 100


def test_wheels_are_for_all_versions_of_python_that_are_tried():
    oldest = re.fullmatch(r">=3\.(\d+)", PYPROJECT["project"]["requires-python"])[1]
    assert f'features = ["abi3-py3{oldest}"]' in (ROOT / "Cargo.toml").read_text()
    tried = re.search(r"for version in ([\d. ]+);", RELEASE)[1].split()
    assert tried == [f"3.{minor}" for minor in range(int(oldest), 15)]
    assert RELEASE.count("--compatibility manylinux2014") == 2 and "macos" in RELEASE and "windows" in RELEASE
    for action in re.findall(r"uses: (\S+)", RELEASE):
        assert re.search(r"@[0-9a-f]{40}$", action), f"{action} is not pinned"


def test_the_source_distribution_has_what_the_crates_compile_in():
    patterns = [entry["path"] for entry in PYPROJECT["tool"]["maturin"]["include"] if entry["format"] == "sdist"]
    kept = {path for pattern in patterns for path in ROOT.glob(pattern)}
    found = []
    for source in (ROOT / "crates").rglob("*.rs"):
        if "tests" in source.relative_to(ROOT).parts:
            continue
        for name in re.findall(r'include_(?:str|bytes)!\(\s*(?:concat!\(\s*)?"([^"]+)"', source.read_text(encoding="utf-8")):
            target = (source.parent / name).resolve()
            if not target.is_relative_to(ROOT / "crates"):
                found.append(target)
                assert target in kept or (target.is_dir() and list(target.rglob("*.json"))), f"{source} compiles in {name}"
    assert len(found) >= 8 and ROOT / "results" in found
    assert {path for path in (ROOT / "results").rglob("*.json")} <= kept
