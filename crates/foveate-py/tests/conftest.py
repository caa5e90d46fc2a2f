"""Options of the tests."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--episodes", type=int, default=2, help="whole episodes that are compared with Gymnasium")


@pytest.fixture
def episodes(request):
    return request.config.getoption("--episodes")
