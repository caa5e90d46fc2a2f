"""The command ``foveate``, as `pip install` puts it on the path."""

from __future__ import annotations

import sys

from . import _native


def main() -> None:
    """Runs the command with the arguments of this process and ends it with the command's exit code."""
    try:
        code = _native.command(sys.argv)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
