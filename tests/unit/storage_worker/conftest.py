"""Metrics of a storage worker, read in memory."""

import pytest

from tests.storage_world import World


@pytest.fixture
def world() -> World:
    return World()
