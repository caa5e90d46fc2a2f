"""The site builds without a warning, with notebooks that run: what MkDocs says is wrong fails, and the pages are looked at."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[4]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def build(root, out, **more):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", root / "mkdocs.yml", "--site-dir", out]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore:IProgress", "JUPYTER_PREFER_ENV_PATH": "1", **more}
    # Notebooks' outputs are kept in the current folder.
    return subprocess.run(command, cwd=out.parent, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site with executed notebooks, and the little of cargo's documentation that the hook needs."""
    folder = tmp_path_factory.mktemp("site")
    rustdoc = folder / "rustdoc/foveate"
    rustdoc.mkdir(parents=True)
    (rustdoc / "index.html").write_text("the crate")
    done = build(ROOT, folder / "out", FOVEATE_NOTEBOOKS="true", FOVEATE_RUSTDOC=str(rustdoc.parent))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


def page(site, name):
    return (site / name / "index.html").read_text(encoding="utf-8")


def test_every_page_is_found_by_navigation_and_search(site):
    home = page(site, "")
    for title in ("Tutorials", "How-to", "Reference", "Explanation", "Studies", "Gallery"):
        assert re.search(rf">\s*{title}\s*<", home), title
    found = {entry["location"].partition("#")[0] for entry in json.loads((site / "search/search_index.json").read_text())["docs"]}
    pages = {f"{path.relative_to(ROOT / 'docs').with_suffix('')}/" for path in (ROOT / "docs").rglob("*.md")} - {"README/"}
    pages |= {f"notebooks/{path.stem}/" for path in NOTEBOOKS} | {"", "documentation/", "gallery/", "rust-crates/", "repository/CHANGELOG/"}
    assert pages - found == set()


def test_every_link_of_a_page_leads_to_a_file_of_the_site(site):
    count = 0
    for path in site.rglob("*.html"):
        if "rustdoc" in path.parts or path.name == "404.html":
            continue
        for link in re.findall(r'(?:href|src)="([^"#?:]+)(?:[#?][^"]*)?"', path.read_text(encoding="utf-8")):
            target = (path.parent / link).resolve()
            count += 1
            assert target.is_file() or (target / "index.html").is_file(), f"{path.relative_to(site)}: {link}"
    assert count > 1000


def test_pictures_are_in_the_gallery(site):
    shown = set(re.findall(r'src="[^"]*images/([^"]+)"', page(site, "gallery")))
    assert {path.name for path in (ROOT / "docs/images").glob("*.png")} - {"watch.png"} <= shown | {"watch.png"}
    assert "watch.png" in shown, "README's, too"


def test_notebooks_are_executed_and_can_be_fetched(site):
    assert len(NOTEBOOKS) >= 3
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, 4)
        nbformat.validate(notebook)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert cells and not any(cell.outputs for cell in cells), f"{path.name} is kept without outputs"
        html = page(site, f"notebooks/{path.stem}")
        assert f'{path.name}"' in html and (site / "notebooks" / path.stem / path.name).is_file()
        assert "Traceback" not in html and "Warning" not in html
    assert "538.8" in page(site, "notebooks/published")
    assert "mean return" in page(site, "notebooks/cartpole") and "<svg" in page(site, "notebooks/cartpole")
    assert "data:image/png" in page(site, "notebooks/stable-baselines3")


def test_what_is_wrong_fails(tmp_path):
    for part in ("docs", "python"):
        shutil.copytree(ROOT / part, tmp_path / part)
    for path in [*ROOT.glob("*.md"), ROOT / "mkdocs.yml"]:
        shutil.copy(path, tmp_path)

    def broken(file, text):
        with open(tmp_path / file, "a", encoding="utf-8") as page:
            page.write(f"\n{text}\n")
        done = build(tmp_path, tmp_path / "out")
        assert done.returncode != 0
        return done.stdout + done.stderr

    said = broken("docs/runs.md", "[a](trust.md#nowhere) [b](none.md)")
    assert "does not contain an anchor '#nowhere'" in said and "'none.md', but the target is not found" in said
    assert "has pages of the kinds {'essay'}" in broken("docs/README.md", "| [new.md](new.md) | essay | about |")
