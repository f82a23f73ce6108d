"""The quarantine on a screen and as JSON."""

import asyncio
import json
from typing import Any

import pytest
from psycopg import AsyncConnection

from scoreline.command_error import CommandError
from scoreline.reports.quarantine import SHOWN_BYTES, show_list, show_one
from scoreline.servers.addresses import Servers

INSERT = (
    "INSERT INTO quarantine (id, evaluation_id, reason, detail, entry_id, body, quarantined_at)"
    " VALUES (%s, %s, %s, %s, '1-0', %s, '2026-01-01T00:00:00Z'::timestamptz + %s * interval '1 second')"
)


@pytest.fixture
async def servers_with_entries(postgres_url: str, conn: AsyncConnection[Any]) -> Servers:
    """A database with a small and a large quarantined entry."""
    await conn.execute(INSERT, ["abc1", "e-1", "garbage", "no \x1b[2J[bold]JSON[/]", b"{\xff\x1b", 0])
    await conn.execute(INSERT, ["abc2", None, "oversize", "too large", b"x" * (SHOWN_BYTES + 1), 1])
    return Servers("redis://127.0.0.1:1", postgres_url)


async def test_the_newest_entry_is_listed_first(
    servers_with_entries: Servers, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each filter leaves the entries that match it."""

    async def listed(evaluation: str | None = None, reason: str | None = None, limit: int = 9) -> list[str]:
        await asyncio.to_thread(show_list, servers_with_entries, evaluation, reason, limit, as_json=True)
        return [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]

    assert await listed() == ["abc2", "abc1"]
    assert await listed(limit=1) == ["abc2"]
    assert await listed(evaluation="e-1") == ["abc1"]
    assert await listed(reason="oversize") == ["abc2"]


async def test_the_list_for_people_obeys_no_foreign_text(
    servers_with_entries: Servers, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences and markup are printed; an empty list is reported on stderr."""
    await asyncio.to_thread(show_list, servers_with_entries, "e-1", None, 9, as_json=False)
    printed = capsys.readouterr().out
    assert "no \\x1b[2J[bold]JSON[/]" in printed
    assert "\x1b" not in printed
    await asyncio.to_thread(show_list, servers_with_entries, "e-9", None, 9, as_json=False)
    printed, message = capsys.readouterr()
    assert (printed, message) == ("", "The quarantine is empty.\n")


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("xyz", "Nothing in quarantine has an id that begins with 'xyz'."),
        ("abc", "More than one id begins with 'abc'; give more of it."),
    ],
)
async def test_a_prefix_must_name_one_entry(
    servers_with_entries: Servers, prefix: str, message: str
) -> None:
    """No match and several matches have messages of their own."""
    with pytest.raises(CommandError) as caught:
        await asyncio.to_thread(show_one, servers_with_entries, prefix, as_json=False)
    assert str(caught.value) == message


async def test_one_entry_is_shown_with_the_beginning_of_its_bytes(
    servers_with_entries: Servers, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are no text are escaped; a body that was cut is reported on stderr."""
    await asyncio.to_thread(show_one, servers_with_entries, "abc1", as_json=True)
    assert json.loads(capsys.readouterr().out)["body"] == "{\\xff\x1b"
    await asyncio.to_thread(show_one, servers_with_entries, "abc1", as_json=False)
    printed, message = capsys.readouterr()
    assert (printed.splitlines()[-1], message) == ("{\\xff\\x1b", "")
    await asyncio.to_thread(show_one, servers_with_entries, "abc2", as_json=False)
    assert f"(the first {SHOWN_BYTES} of {SHOWN_BYTES + 1} bytes)" in capsys.readouterr().err
