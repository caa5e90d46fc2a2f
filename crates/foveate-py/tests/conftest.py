"""Options of the tests, and the record of those that are skipped."""

import os

import pytest


def _record(report):
    """Adds a line to the file that FOVEATE_SKIPPED names, as `foveate_toy::needs::skip` does."""
    path = os.environ.get("FOVEATE_SKIPPED")
    if path and report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"crates/foveate-py/tests {report.nodeid}: {reason.removeprefix('Skipped: ')}\n")


def pytest_runtest_logreport(report):
    _record(report)


def pytest_collectreport(report):
    _record(report)


def pytest_addoption(parser):
    parser.addoption("--episodes", type=int, default=2, help="whole episodes that are compared with Gymnasium")
    parser.addoption("--kills", type=int, default=5, help="workers of a cluster that are killed")


@pytest.fixture
def episodes(request):
    return request.config.getoption("--episodes")


@pytest.fixture
def kills(request):
    return request.config.getoption("--kills")
