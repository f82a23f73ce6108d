"""The servers of a command: given ones are checked as far as the command needs them."""

import pytest

from projections.database.readiness import DatabaseNotReady
from scoreline.local.servers import named_servers, ready_postgres, ready_servers
from scoreline.servers.addresses import Servers
from scoreline.servers.availability import Unavailable
from scoreline.settings import Settings

NOWHERE = "redis://127.0.0.1:1"


def test_given_servers_are_named_without_a_connection():
    """A command that reads either of two servers may find one of them down."""
    settings = Settings(redis_url=NOWHERE, postgres_url="postgresql://127.0.0.1:1/x")
    with named_servers(settings) as servers:
        assert servers == Servers(NOWHERE, "postgresql://127.0.0.1:1/x")


def test_a_report_needs_no_redis(postgres_url: str):
    """A command that runs a batch does."""
    settings = Settings(redis_url=NOWHERE, postgres_url=postgres_url)
    with ready_postgres(settings) as servers:
        assert servers.postgres_url == postgres_url
    with pytest.raises(Unavailable, match="Redis"), ready_servers(settings):
        pass


def test_a_database_without_tables_is_not_ready(redis_url: str, empty_postgres_url: str):
    """Both kinds of commands are refused; none migrates a given database by itself."""
    settings = Settings(redis_url=redis_url, postgres_url=empty_postgres_url)
    for lend in (ready_postgres, ready_servers):
        with pytest.raises(DatabaseNotReady), lend(settings):
            pass


def test_a_database_of_another_number_of_shards_is_not_ready(redis_url: str, postgres_url: str):
    """Evaluations would be looked for in other streams."""
    settings = Settings(redis_url=redis_url, postgres_url=postgres_url)
    other = settings.model_copy(update={"shards": settings.shards * 2})
    with pytest.raises(DatabaseNotReady), ready_servers(other):
        pass
    with ready_servers(settings, service="coordinator") as servers:
        assert servers == Servers(redis_url, postgres_url)
