"""Servers for commands: empty, or migrated."""

import pytest

from tests.integration.scoreline.cli.commands import Urls


@pytest.fixture
def urls(redis_url: str, empty_postgres_url: str) -> Urls:
    """Servers that answer, with an empty database."""
    return {"EVAL_REDIS_URL": redis_url, "EVAL_POSTGRES_URL": empty_postgres_url}


@pytest.fixture
def migrated(redis_url: str, postgres_url: str) -> Urls:
    return {"EVAL_REDIS_URL": redis_url, "EVAL_POSTGRES_URL": postgres_url}
