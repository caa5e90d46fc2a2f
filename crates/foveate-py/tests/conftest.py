"""Options of the tests."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--episodes", type=int, default=2, help="whole episodes that are compared with Gymnasium")
    parser.addoption("--kills", type=int, default=5, help="workers of a cluster that are killed")


@pytest.fixture
def episodes(request):
    return request.config.getoption("--episodes")


@pytest.fixture
def kills(request):
    return request.config.getoption("--kills")
