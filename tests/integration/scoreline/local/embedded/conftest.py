"""Embedded servers that were used before."""

from pathlib import Path

import pytest

from scoreline.local.embedded import embedded_servers
from tests.integration.scoreline.local.embedded.users import at_rest
from tests.waiting import until


@pytest.fixture(scope="session")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("embedded")
    with embedded_servers(root):
        pass
    return root


@pytest.fixture
async def root(seed: Path) -> Path:
    """A root that was used before, with no process: its cluster is made once."""
    await until(lambda: at_rest(seed))
    return seed
