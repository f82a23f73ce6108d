"""`scoreline quarantine` from the command line."""

import json

import psycopg
import pytest

from tests.integration.scoreline.cli.commands import Urls, complaint
from tests.integration.worker import scoreline


@pytest.fixture
def quarantined(migrated: Urls) -> Urls:
    with psycopg.connect(migrated["EVAL_POSTGRES_URL"], autocommit=True) as conn:
        for key in ("abc1", "abc2"):
            conn.execute(
                "INSERT INTO quarantine (id, reason, detail, entry_id, body)"
                " VALUES (%s, 'garbage', '[red]not markup[/red]', '1-0', '{}')",
                [key],
            )
    return migrated


def test_quarantine_show_wants_one_entry(quarantined: Urls) -> None:
    """An unknown id and an ambiguous one have different errors."""
    assert "Nothing in quarantine has an id that begins with 'xyz'" in complaint(
        "quarantine", "show", "xyz", **quarantined
    )
    assert "More than one id begins with 'abc'; give more of it" in complaint(
        "quarantine", "show", "abc", **quarantined
    )
    shown = scoreline("quarantine", "show", "abc1", **quarantined)
    assert "[red]not markup[/red]" in shown.stdout
    listed = scoreline("quarantine", "list", "--json", "--limit", "1", **quarantined)
    assert len([json.loads(line) for line in listed.stdout.splitlines()]) == 1


def test_empty_quarantine_is_reported_on_stderr(migrated: Urls) -> None:
    """Standard output stays empty for machines; standard error has a sentence for people."""
    ended = scoreline("quarantine", "list", **migrated)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "empty" in ended.stderr
