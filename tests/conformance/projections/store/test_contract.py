"""The contract of the projection store, on memory and on Postgres."""

from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal

import pytest
from psycopg import AsyncConnection

from eventlog import payloads as p
from eventlog.codec import QuarantineReason, RejectedEntry, encode
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.database.connection import make_pool
from projections.database.errors import UnstorableData
from projections.folds.change import EvaluationRow, quarantine_row
from projections.folds.progress import Progress
from projections.folds.scorecard import scorecard
from projections.store import postgres
from projections.store.postgres import FEW
from tests.builders import BATCH, EVALUATION, event, history
from tests.conformance.projections.store.store_forms import (
    SHARD,
    MemoryForm,
    PostgresForm,
    TablesForm,
    change_of,
    store,
)

LIFE = "queued provisioning running responded scored completed"


@pytest.fixture(params=["memory", "postgres", "postgres by COPY"])
async def form(request: pytest.FixtureRequest) -> AsyncIterator[TablesForm]:
    """Empty tables, in memory and on Postgres in turn; there, many changes are written by COPY."""
    if request.param == "memory":
        yield MemoryForm()
        return
    url = request.getfixturevalue("postgres_url")
    async with make_pool(url, size=2) as pool, await AsyncConnection.connect(url, autocommit=True) as conn:
        yield PostgresForm(pool, conn, few=0 if request.param == "postgres by COPY" else FEW)


# Rows.


async def test_a_row_is_created_and_read_back(form):
    """Cursor, owner, flag and head are read as they were committed."""
    change = await store(form, *history("queued provisioning"))
    cursor = Cursor(1, 1, Phase.PROVISIONING)
    kept = EvaluationRow(
        EVALUATION, BATCH, change.month, cursor, "executor-1", bridged=False, head=change.head
    )
    assert dict(await form.tables.rows([EVALUATION, "unknown"])) == {EVALUATION: kept}
    assert (await form.contents()).ended_at == {EVALUATION: None}


async def test_a_row_can_be_created_before_any_event_is_applied(form):
    """An evaluation that waits for its opening has a row, so that a sweep finds it."""
    await store(form, *history("provisioning", first=1))
    row = (await form.tables.rows([EVALUATION]))[EVALUATION]
    assert (row.cursor, row.head) == (Cursor(), None)


async def test_a_row_advances(form):
    """Each commit starts at the cursor of the last one."""
    *_, completed = events = history(LIFE)
    for each in events:
        await store(form, each)
    assert (await form.tables.rows([EVALUATION]))[EVALUATION].cursor == Cursor(1, 5, Phase.COMPLETED)
    assert (await form.contents()).ended_at == {EVALUATION: completed.occurred_at}


@pytest.mark.parametrize("known", [0, 2])
async def test_a_lost_race_writes_nothing(form, known):
    """No event, scorecard, count or quarantined entry is written; other changes of the commit are."""
    events = history("queued provisioning running completed")
    if known:
        await store(form, *events[:known])
    late = await change_of(form, *events[known:], event("queued", sequence=9))
    late.quarantined.append(
        quarantine_row(EVALUATION, RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "", b"mine"))
    )
    await store(form, events[known])
    before = await form.contents()
    ended = history("queued failed", evaluation_id="other")
    neighbour = await change_of(form, *ended, evaluation_id="other")
    committed = await form.tables.commit([late, neighbour])
    assert (committed.lost, committed.newly_quarantined) == ({EVALUATION}, 0)
    after = await form.contents()
    assert set(after.events) - set(before.events) == {("other", 1, 0), ("other", 1, 1)}
    assert (set(after.scorecards), after.quarantine) == ({"other"}, {})
    counted = after.progress[BATCH, SHARD]
    assert (counted.total, counted.failed, counted.completed) == (2, 1, 0)


async def test_an_event_cannot_be_stored_twice(form):
    """Where the compare-and-set does not prevent it, the unique key rolls the whole commit back."""
    await store(form, *history("queued provisioning"))
    before = await form.contents()
    forged = await change_of(form, *history("running", first=2))
    forged.events = [forged.events[0]._replace(sequence=1)]
    neighbour = await change_of(form, event("queued", evaluation_id="other"), evaluation_id="other")
    with pytest.raises(UnstorableData):
        await form.tables.commit([neighbour, forged])
    assert await form.contents() == before


# Events.


async def test_bodies_are_stored_byte_for_byte(form):
    """Whitespace, escapes and the order of keys are kept."""
    body = (
        encode(event("queued"))
        .replace(b'":', b'"  :\t')
        .replace(b"2 + 2", rb"\u0041\n \"\\ \ud83d\ude00 1.0e0")
    )
    change = await change_of(form, event("queued"))
    change.events = [change.events[0]._replace(event=body)]
    await form.tables.commit([change])
    row = (await form.tables.rows([EVALUATION]))[EVALUATION]
    assert (await form.tables.stored([row]))[EVALUATION][1, 0].body == body
    assert (await form.contents()).events == {(EVALUATION, 1, 0): ("applied", body)}


async def test_stored_events_are_returned_for_their_evaluation_only(form):
    """Each has its disposition."""
    for key in ("a", "b"):
        await store(form, *history("queued provisioning completed", evaluation_id=key))
    rows = await form.tables.rows(["a"])
    found = await form.tables.stored(list(rows.values()))
    assert set(found) == {"a"}
    assert {key: each.verdict for key, each in found["a"].items()} == {
        (1, 0): "applied", (1, 1): "applied", (1, 2): "rejected",
    }  # fmt: skip


async def test_side_events_are_counted_by_the_worker_that_inserts_them(form):
    """If two workers read the same stale answer, its cost is counted once."""
    await store(form, *history("queued provisioning running"), event("queued:lost", attempt=2))
    paid = p.Responded(output="4", usage=p.TokenUsage(input_tokens=7), cost_usd=0.5)
    twice = [await change_of(form, event(paid, sequence=3)) for _ in range(2)]
    for change in twice:
        assert (await form.tables.commit([change])).lost == set()
    contents = await form.contents()
    assert contents.events[EVALUATION, 1, 3] == ("stale", encode(event(paid, sequence=3)))
    counted = contents.progress[BATCH, SHARD]
    assert (counted.tokens, counted.cost_usd) == (7, Decimal("0.5"))


# Scorecards.


async def test_a_scorecard_is_written_replaced_and_removed(form):
    """It follows the evaluation: settled, reopened by an operator, completed."""
    *_, failed = events = history("queued provisioning failed")
    await store(form, *events)
    assert (await form.contents()).scorecards == {EVALUATION: scorecard(failed, bridged=False)}
    await store(form, event("queued:operator", attempt=2))
    reopened = await form.contents()
    assert (reopened.scorecards, reopened.ended_at) == ({}, {EVALUATION: None})
    *_, completed = events = history("provisioning running completed", attempt=2, first=1)
    await store(form, *events)
    assert (await form.contents()).scorecards == {EVALUATION: scorecard(completed, bridged=False)}


async def test_a_scorecard_is_replaced_within_one_commit(form):
    """An evaluation that is reopened and ends again in one commit has the new scorecard."""
    await store(form, *history("queued failed"))
    *_, again = events = history("queued:operator failed", attempt=2)
    await store(form, *events)
    assert (await form.contents()).scorecards == {EVALUATION: scorecard(again, bridged=False)}


async def test_a_scorecard_is_read_back_unchanged(form):
    """This holds for every column, and byte for byte for JSON."""
    score = p.Score(evaluator="judge", score=0.1, passed=False, reason="é\n", cost_usd=1e-7)
    result = p.Completed(
        verdict="failed",
        score=-0.1,
        scores=(score,),
        usage=p.TokenUsage(input_tokens=10**12),
        cost_usd=0.1,
        latency_ms=1e-3,
        exit_code=-(2**31),
    )
    *_, end = events = history("queued provisioning running completed", completed=result)
    await store(form, *events)
    assert (await form.contents()).scorecards == {EVALUATION: scorecard(end, bridged=False)}


# Progress, bridges, quarantine.


async def test_progress_is_the_exact_sum_of_all_changes(form):
    """Decimals do not drift, and commits add up."""
    costs = [0.1, 0.2, 1e-7, 0.7]
    for n, cost in enumerate(costs):
        done = p.Completed(verdict="passed", score=0.1, cost_usd=cost, usage=p.TokenUsage(output_tokens=1))
        await store(
            form, *history("queued provisioning running completed", evaluation_id=f"e{n}", completed=done)
        )
    await store(form, *history("queued failed", evaluation_id="e9"))
    assert (await form.contents()).progress == {
        (BATCH, SHARD): Progress(
            total=5, completed=4, passed=4, failed=1, scored=4, score_sum=Decimal("0.4"), tokens=4,
            cost_usd=Decimal("1.0000001"),
        )
    }  # fmt: skip


async def test_a_bridge_is_recorded_with_the_missing_sequences(form):
    """The bridge lists them, and the row and the scorecard are flagged."""
    queued, _, running, _, completed = history("queued provisioning running responded completed")
    await store(form, queued, running, completed, bridge=True)
    contents = await form.contents()
    assert contents.bridges == {(EVALUATION, 1, 4): (range(1, 2), range(3, 4))}
    assert contents.scorecards[EVALUATION].bridged is True
    assert (await form.tables.rows([EVALUATION]))[EVALUATION].bridged is True
    assert contents.progress[BATCH, SHARD].bridged == 1
    assert contents.events[EVALUATION, 1, 2][0] == "late"


async def test_an_entry_is_quarantined_once(form):
    """Alone or with a commit, twice in one call or later, only a new entry is counted."""
    bad = quarantine_row(
        EVALUATION, RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "not JSON", b"\x00\xff{")
    )
    orphan = quarantine_row(None, RejectedEntry(b"2-0", QuarantineReason.BAD_WAKE_UP, "no id", b""))
    assert await form.tables.quarantine([bad, orphan, bad]) == 2
    assert await form.tables.quarantine([bad]) == 0
    change = await change_of(form, event("queued"))
    change.quarantined = [
        bad,
        quarantine_row(EVALUATION, RejectedEntry(b"3-0", QuarantineReason.CONFLICT, "", b"other")),
    ]
    assert (await form.tables.commit([change])).newly_quarantined == 1
    kept = (await form.contents()).quarantine
    assert len(kept) == 3
    assert (kept[bad.id], kept[orphan.id]) == (bad, orphan)


# Batches and the sweep.


async def test_a_batch_that_was_not_submitted_is_external(form, monkeypatch):
    """Its month starts on the first day, and is the same at every call."""
    monkeypatch.setattr(postgres, "MAX_KNOWN_BATCHES", 1)
    first = dict(await form.tables.months(["a", "b"]))
    assert set(first) == {"a", "b"}
    assert {month.day for month in first.values()} == {1}
    assert dict(await form.tables.months(["a", "c"])) == {"a": first["a"], "c": first["a"]}
    assert dict(await form.tables.months([])) == {}
    assert (await form.contents()).batches == dict.fromkeys("abc", first["a"])
    assert isinstance(first["a"], date)


async def test_the_sweep_pages_through_open_evaluations_without_progress(form):
    """In order of id, without ended evaluations and those with recent progress."""
    for key in ("d", "b", "Z", "é", "ended"):
        await store(form, event("queued", evaluation_id=key))
    await store(form, *history("failed", evaluation_id="ended", first=1))
    assert await form.tables.open_evaluations(after="", unchanged_for=10, limit=10) == []
    await form.wait(11)
    await store(form, *history("provisioning", evaluation_id="d", first=1))
    pages, after = [], ""
    while page := await form.tables.open_evaluations(after=after, unchanged_for=10, limit=2):
        pages.append(list(page))
        after = page[-1]
    assert pages == [["Z", "b"], ["é"]]
