"""The second fold of the stored log: it gives the same tables, and names every rule that the log breaks."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from eventlog.events import Event
from eventlog.timeline import Cursor, Disposition
from projections.folds.change import EvaluationRow, EventRow
from projections.folds.progress import Progress
from projections.folds.refold import RefoldResult, refold
from projections.store.memory import MemoryStore
from tests.builders import BATCH, EVALUATION, arrive, history
from tests.storage_world import World, store_badly

MONTH = date(2026, 1, 1)
ROW = EvaluationRow(EVALUATION, BATCH, MONTH, Cursor())


def retraced_tables(tables: MemoryStore, shard: int = 0) -> dict[str, RefoldResult]:
    """Fold the whole log of the tables in memory again."""
    found = {}
    for key, held in tables.evaluations.items():
        logged = sorted(kept for kept in tables.events.values() if kept.evaluation_id == key)
        bridged_gaps = {(a, s): missing for (of, a, s), missing in tables.bridges.items() if of == key}
        blank = EvaluationRow(key, held.row.batch_id, held.row.month, Cursor())
        found[key] = refold(blank, shard, logged, bridged_gaps)
    return found


def recounted(retraced: Mapping[str, RefoldResult]) -> Progress:
    """Sum the progress of all evaluations."""
    total = Progress()
    for each in retraced.values():
        total += each.progress
    return total


async def stored_badly(random: Random) -> MemoryStore:
    world = World()
    await store_badly(random, world, world.storage())
    return world.tables


def test_any_log_refolds_to_the_tables_it_was_written_with():
    """Rows, scorecards, bridges and counters are equal, with events of every disposition."""
    verdicts: set[str] = set()
    bridges = 0

    @given(st.randoms(use_true_random=False))
    @settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
    def check_one(random: Random) -> None:
        nonlocal bridges
        tables = asyncio.run(stored_badly(random))
        retraced = retraced_tables(tables)
        for key, held in tables.evaluations.items():
            again = retraced[key].change
            assert retraced[key].broken == []
            assert (again.after, again.owner, again.bridged) == held.row[3:6]
            assert (again.ended_at, again.scorecard) == (held.ended_at, tables.scorecards.get(key))
            assert {bad.id for bad in again.quarantined} <= tables.quarantined.keys()
        counted = Progress()
        for part in tables.progress.values():
            counted += part
        assert recounted(retraced) == counted
        verdicts.update(kept.verdict for kept in tables.events.values())
        bridges += len(tables.bridges)

    check_one()
    assert verdicts == set(Disposition), "a verdict that never came up was not checked"
    assert bridges > 0


# Faults of a log.


def logged(events: Sequence[Event], **verdicts: str) -> list[EventRow]:
    """Make log rows of events, all applied except those named by type."""
    return [
        EventRow(MONTH, EVALUATION, *each.key, each.type, verdicts.get(each.type, "applied"),
                 each.occurred_at, entry_id.decode(), body)
        for entry_id, each, body in arrive(events)
    ]  # fmt: skip


def broken(
    rows: Sequence[EventRow], bridged_gaps: Mapping[tuple[int, int], tuple[range, ...]] | None = None
):
    return refold(ROW, 0, rows, bridged_gaps or {}).broken


LIFE = history("queued provisioning running responded completed")


def test_a_valid_log_breaks_no_rule():
    """Nor does one with a bridge and its late events."""
    assert broken(logged(LIFE)) == []
    assert broken(logged(LIFE, running="late", responded="late"), {(1, 4): (range(2, 3),)}) == []


def test_a_gap_without_a_bridge_is_reported():
    """Only contiguous or bridged histories can be applied."""
    assert broken(logged([*LIFE[:2], LIFE[4]])) == [
        "1/4 completed was applied next after 1/1, and no bridge leads there"
    ]


def test_an_opening_that_is_out_of_place_is_reported():
    """A body that claims to be the first event again opens nothing, even where the evaluation has ended."""
    rows = logged(LIFE)
    again = [*rows, rows[0]._replace(attempt=2)]
    assert broken(again)[-1] == "1/0 queued was applied next after 1/4, and no bridge leads there"


def test_an_attempt_without_an_opening_is_reported():
    """The first event of an evaluation must be an opening."""
    assert broken(logged(LIFE[1:2])) == [
        "1/1 provisioning was applied next after nothing, and no bridge leads there"
    ]


def test_an_illegal_event_that_was_applied_is_reported():
    """There is no transition outside the table."""
    assert broken(logged(history("queued provisioning completed"))) == [
        "1/2 completed was applied, but provisioning does not accept completed there"
    ]


def test_an_event_after_the_end_is_reported():
    """A final evaluation accepts no event, of its attempt or of a later one."""
    assert broken(logged(history("queued provisioning running completed scored"))) == [
        "1/4 scored was applied, but completed does not accept scored there"
    ]
    again = history("queued:operator", attempt=2)
    assert broken(logged([*LIFE, *again])) == [
        "2/0 queued was applied, but completed does not accept queued there"
    ]


def test_a_settled_evaluation_reopened_without_an_operator_is_reported():
    """Only an operator can reopen it."""
    events = [*history("queued failed"), *history("queued:retry", attempt=2)]
    assert broken(logged(events)) == ["2/0 queued was applied, but failed does not accept queued there"]


def test_a_legal_event_that_was_rejected_is_reported():
    """An event that the table accepts cannot have been rejected."""
    assert broken(logged(LIFE[:3], running="rejected")) == [
        "1/2 running was rejected, but provisioning accepts running"
    ]


def test_an_opening_rejected_before_a_lower_one_was_accepted_is_valid():
    """When it arrived the evaluation had failed, and no operator had reopened it."""
    first, second = history("queued failed"), history("queued:operator", attempt=2)
    third = logged(history("queued:retry", attempt=3), queued="rejected")
    assert broken([*logged(first), *logged(second), *third]) == []


def test_a_rejected_event_beyond_a_gap_is_reported():
    """An event beyond a gap waits and cannot be rejected."""
    assert broken(logged([*LIFE[:2], LIFE[4]], completed="rejected")) == [
        "1/4 completed was rejected next after 1/1, and not in its place"
    ]


def test_a_stale_event_of_the_newest_attempt_is_reported():
    """Only a higher attempt makes an event stale."""
    assert broken(logged(LIFE[:3], running="stale")) == ["1/2 is stale, but no attempt above 1 was opened"]


def test_a_late_event_without_a_bridge_is_reported():
    """Only a bridge makes an event late."""
    assert broken(logged(LIFE[:3], running="late")) == [
        "1/2 running is late, but nothing was bridged in its attempt"
    ]


@pytest.mark.parametrize(
    ("missing", "reported"),
    [
        ((range(2, 3),), "1/4 completed was bridged to, but the bridge does not name 2-3"),
        ((), "1/4 completed was bridged to, but the bridge does not name 2-3"),
        ((range(1, 4),), "1/1 was applied, but a bridge calls it missing"),
    ],
)
def test_a_bridge_that_does_not_fit_its_gap_is_reported(missing, reported):
    """A bridge lists exactly the missing sequences."""
    assert broken(logged([*LIFE[:2], LIFE[4]]), {(1, 4): missing}) == [reported]


def test_a_bridge_to_an_event_that_was_not_applied_is_reported():
    """The closing event of a bridge must have been applied."""
    assert broken(logged(LIFE[:3]), {(1, 9): (range(3, 9),)}) == [
        "a bridge leads to 1/9, which was not applied"
    ]


def test_a_bridge_to_an_event_that_closes_nothing_is_reported():
    """A gap is bridged only to a closing event."""
    assert broken(logged([LIFE[0], LIFE[2]]), {(1, 2): (range(1, 2),)}) == [
        "1/2 running was bridged to, but can't close what is queued"
    ]


def test_columns_that_contradict_their_event_are_reported():
    """The columns beside an event must have the values of its body."""
    first, second, *_ = logged(LIFE)
    assert broken([first, second._replace(type="running")]) == [
        "1/1 provisioning differs from its row: running but provisioning"
    ]


def test_a_body_that_is_no_event_is_reported():
    """A stored body that cannot be decoded was altered."""
    first, second, *_ = logged(LIFE)
    assert broken([first, second._replace(event=b"{}")]) == [
        "1/1 can't be read: invalid: schema_version is None"
    ]
