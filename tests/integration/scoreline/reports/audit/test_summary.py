"""The summary of an audit fits on one screen."""

import pytest

from eventlog import payloads as p
from tests.builders import BATCH, history
from tests.integration.scoreline.reports.audit.audited import LIFE, document, replay
from tests.integration.worker import Site, scoreline, site, worker
from tests.waiting import until


async def test_summary_fits_on_one_screen(here: Site) -> None:
    """The summary has rates, waits, retries, reorderings, the slowest evaluations and all executors."""
    code, out, _ = replay(here, "--batch", BATCH)
    assert code == 0
    assert "7 of 9 evaluations ended" in out
    assert "6 completed" in out
    assert "opened again: 1 retry" in out
    assert "bridged gaps: 1" in out
    for line in ("queued → provisioning", "responded → scored", "arrived → stored"):
        assert line in out
    assert len(out.splitlines()) < 50
    found = document(here, "--batch", BATCH, "--summary")
    [share] = found["executors"]
    assert (share["executor"], share["retried"], share["failed"], share["unclosed"]) == (
        "executor-1", 1, 1, 1,
    )  # fmt: skip
    assert found["verdicts"] == {"applied": 44, "late": 2}
    assert {slow["evaluation_id"] for slow in found["slowest"]} >= {"retried"}


@pytest.mark.parametrize(
    "arguments",
    [("e-1", "--batch", "b"), ("--batch", "b", "--at", "3"), ("--batch", "b", "--verify", "--rebuild"),
     ("--summary",), ("--batch", "b", "--follow"), ("--batch", "b", "--from", "redis")],
)  # fmt: skip
def test_conflicting_options_are_usage_errors(arguments: tuple[str, ...]) -> None:
    """Options that exclude each other exit with 2, before any server is queried."""
    assert scoreline("replay", *arguments).returncode == 2


async def test_escape_sequences_in_foreign_ids_take_no_effect(redis_url: str, postgres_url: str) -> None:
    """An id with escape sequences or markup is printed as text."""
    async with site(redis_url, postgres_url) as here:
        wild = "wild-\u202e[bold]"
        events = history(LIFE, evaluation_id=wild, provisioning=p.Provisioning(executor=wild, nonce="n"))
        async with worker(here):
            await here.append(events)
            await until(lambda: here.state(wild))
        _, out, _ = replay(here, "--batch", BATCH)
        assert "\u202e" not in out
        assert "wild-\\u202e[bold]" in out
