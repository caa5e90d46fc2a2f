"""Prints the notes of a release: the section of CHANGELOG.md about the version that a tag names.

usage: release_notes.py v0.1.0
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag, change_log, manifest):
    """The text of a version's section; `SystemExit` where the tag, the workspace and the change log disagree."""
    version = tag.removeprefix("v")
    [own] = re.findall(r'^version = "([^"]+)"$', manifest, re.MULTILINE)
    if version != own:
        raise SystemExit(f"the tag is {tag}, the workspace in Cargo.toml has version {own}; tag v{own}, or change it")
    found = re.search(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", change_log, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md has no section about {version}; give its heading the version: ## {version}")
    unreleased = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", change_log, re.MULTILINE | re.DOTALL)
    if unreleased is not None and unreleased[1].strip():
        raise SystemExit(f"CHANGELOG.md has changes under Unreleased; move them below ## {version}, for they are in what is tagged")
    return found[1].strip()


if __name__ == "__main__":
    print(notes(sys.argv[1], (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), (ROOT / "Cargo.toml").read_text(encoding="utf-8")))
