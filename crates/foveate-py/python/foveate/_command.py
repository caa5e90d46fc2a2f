"""The command ``foveate``, as `pip install` puts it on the path."""

from __future__ import annotations

import sys

from . import _native


def _cluster(address: str) -> object:
    """The cluster of ``--cluster``; Ray is imported only for that."""
    from .ray import RayCluster

    return RayCluster(address)


def main() -> None:
    """Runs the command with the arguments of this process and ends it with the command's exit code."""
    try:
        code = _native.command(sys.argv, _cluster)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
