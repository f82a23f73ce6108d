"""`scoreline db`: migrations from the command line."""

import pytest

from tests.integration.scoreline.cli.commands import Urls, complaint
from tests.integration.worker import scoreline


@pytest.mark.parametrize(
    "command", [["quarantine", "list"], ["storage-worker", "start"], ["demo"]], ids=" ".join
)
def test_database_without_tables_names_the_command_to_run(command: list[str], urls: Urls) -> None:
    """An empty database has another error than a missing one, with the remedy."""
    assert "Run: scoreline db migrate" in complaint(*command, **urls)


def test_migrating_twice_is_harmless_and_needs_no_redis(empty_postgres_url: str) -> None:
    """The second run reports that there is nothing to do."""
    first = scoreline("db", "migrate", EVAL_POSTGRES_URL=empty_postgres_url)
    second = scoreline("db", "migrate", EVAL_POSTGRES_URL=empty_postgres_url)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert "applied core" in first.stderr
    assert second.stderr == "The database is up to date.\n"


def test_other_number_of_shards_is_refused(migrated: Urls) -> None:
    """The command does not read from the wrong streams, and names the right number."""
    message = complaint("storage-worker", "start", **migrated, EVAL_SHARDS="8")
    assert "was created for 4 shards, EVAL_SHARDS is 8. Set EVAL_SHARDS=4" in message
