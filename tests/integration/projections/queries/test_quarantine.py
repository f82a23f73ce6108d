"""Lists of the quarantine, and entries by the beginning of their id."""

from collections.abc import Sequence

import pytest

from projections.queries.quarantine import QuarantinedEntry, quarantine_find, quarantine_list
from tests.integration.scoreline.batch_harness import Harness

ENTRIES = (("abc1", "garbage", "e-1", 1), ("abc2", "overlong", "e-1", 2), ("b", "garbage", None, 3))


def ids(entries: Sequence[QuarantinedEntry]) -> list[str]:
    """Return the ids of entries, in their order."""
    return [entry.id for entry in entries]


@pytest.fixture
async def quarantined(here: Harness) -> Harness:
    for key, reason, evaluation_id, at in ENTRIES:
        await here.place.conn.execute(
            "INSERT INTO quarantine (id, reason, detail, entry_id, evaluation_id, body, quarantined_at)"
            " VALUES (%s, %s, '', '1-0', %s, 'a body', now() + %s * interval '1 s')",
            [key, reason, evaluation_id, at],
        )
    return here


async def test_the_newest_entries_are_first_and_have_no_body(quarantined: Harness) -> None:
    """A body may be large; its size is enough for a list."""
    listed = await quarantine_list(quarantined.place.conn, evaluation=None, reason=None, limit=2)
    assert ids(listed) == ["b", "abc2"]
    assert [(entry.size, entry.body) for entry in listed] == [(6, b""), (6, b"")]


@pytest.mark.parametrize(
    ("evaluation", "reason", "expected"),
    [
        ("e-1", None, ["abc2", "abc1"]),
        (None, "garbage", ["b", "abc1"]),
        ("e-1", "garbage", ["abc1"]),
        ("e-2", None, []),
    ],
)
async def test_a_list_has_both_filters(
    quarantined: Harness, evaluation: str | None, reason: str | None, expected: list[str]
) -> None:
    """An absent filter selects all."""
    conn = quarantined.place.conn
    assert ids(await quarantine_list(conn, evaluation=evaluation, reason=reason, limit=9)) == expected


@pytest.mark.parametrize(
    ("prefix", "expected"), [("abc1", ["abc1"]), ("abc", ["abc1", "abc2"]), ("x", []), ("%", [])]
)
async def test_an_entry_is_found_by_the_beginning_of_its_id(
    quarantined: Harness, prefix: str, expected: list[str]
) -> None:
    """Two entries mean that it is ambiguous; a body is cut to its limit."""
    entries = await quarantine_find(quarantined.place.conn, prefix, max_bytes=3)
    assert ids(entries) == expected
    assert all(entry.body == b"a b" for entry in entries)
