"""Servers for commands: empty, or migrated."""

import pytest

from tests.integration.scoreline.cli.commands import Urls
from tests.integration.worker import scoreline


@pytest.fixture
def urls(redis_url: str, postgres_url: str) -> Urls:
    """Servers that answer, with an empty database."""
    return {"EVAL_REDIS_URL": redis_url, "EVAL_POSTGRES_URL": postgres_url}


@pytest.fixture
def migrated(urls: Urls) -> Urls:
    assert scoreline("db", "migrate", **urls).returncode == 0
    return urls
