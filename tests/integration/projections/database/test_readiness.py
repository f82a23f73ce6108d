"""A database is ready once it is prepared."""

import pytest

from projections.database.readiness import DatabaseNotReady, check_ready, prepare


async def test_a_database_is_ready_once_prepared_for_these_shards(empty_postgres_url):
    """Without tables or for other shards the error names the command; preparing again changes nothing."""
    with pytest.raises(DatabaseNotReady, match="Run: scoreline db migrate"):
        await check_ready(empty_postgres_url, shards=4)
    assert await prepare(empty_postgres_url, shards=4)
    assert await prepare(empty_postgres_url, shards=4) == []
    with pytest.raises(DatabaseNotReady, match="Set EVAL_SHARDS=4"):
        await prepare(empty_postgres_url, shards=8)
    await check_ready(empty_postgres_url, shards=4)
