"""The fast pass of a verification clears only what the fold of the log clears."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import psycopg
import pytest

from projections.verification import verify as verification
from projections.verification.pages import read_batch
from projections.verification.plain_page import PlainPage, clear_plain
from projections.verification.verify import Difference
from tests.builders import BATCH, history
from tests.integration.place import Place, life
from tests.storage_world import store_badly

COLUMNS: dict[str, dict[str, tuple[Any, ...]]] = {
    "evaluations": {
        "batch_id": ("other",), "month": ("2026-12-01",), "shard": (0, 1, 9), "attempt": (0, 2),
        "sequence": (0, 9), "state": ("running", "queued"), "owner": ("another", None), "bridged": (True,),
        "ended_at": ("2026-01-01 00:00:00+00", "infinity", None),
    },
    "scorecards": {
        "batch_id": ("other",), "attempt": (0, 2), "status": ("failed", "cancelled"),
        "verdict": ("failed", None), "score": (0.5, None), "scores": ("[]", '[ {"evaluator":"exact"}]'),
        "tokens": (0, 9), "cost_usd": (9, "0.0010000001"), "latency_ms": (9,), "exit_code": (9, None),
        "error": ('{"kind":"x"}',), "bridged": (True,), "ended_at": ("2026-01-01 00:00:00+00", "-infinity"),
    },
    "events": {
        "attempt": (2, 3), "sequence": (8, 9), "type": ("cancelled", "queued running", ""),
        "verdict": ("stale", "late", "rejected"), "entry_id": ("1-2 3-4", "garbage", "-1", ""),
        "occurred_at": ("2026-01-01 00:00:00+00", "infinity", "0044-03-15 00:00:00+00 BC"),
    },
}  # fmt: skip
"""What verification compares, and values that none of the rows has."""
BODY = (
    "evaluation_id", "batch_id", "attempt", "sequence", "occurred_at", "type", "schema_version", "source",
    "data", "data.executor", "data.nonce", "data.target", "data.case.id", "data.reason", "data.verdict",
    "data.score", "data.scores", "data.usage.input_tokens", "data.cost_usd", "data.latency_ms",
    "data.cached", "data.exit_code", "data.unknown",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    2,
    7,
    10**13,
    1.5,
    True,
    "",
    "other",
    "2026-01-01T00:00:00Z",
    [],
    {},
    [{"score": 1}],
)
IDS = [f"evaluation-{number}" for number in range(5)]
WORDS = "queued provisioning running responded scored completed"


class Corruption(NamedTuple):
    """Another value in a column of one row, or at a path in an event's body."""

    table: str
    column: str
    value: Any
    evaluation_id: str
    sequence: int

    @property
    def where(self) -> str:
        row = f"evaluation_id = '{self.evaluation_id}'"
        return f"{row} AND sequence = {self.sequence}" if self.table == "events" else row


def corruptions(random: Random) -> Iterator[Corruption]:
    """Choose a row and another value for every column, and for every field of a body that a fold reads."""
    for table, columns in COLUMNS.items():
        for column, values in columns.items():
            yield Corruption(table, column, random.choice(values), random.choice(IDS), random.randrange(6))
    for path in BODY:
        yield Corruption(
            "events", f"event.{path}", random.choice(ODD), random.choice(IDS), random.randrange(6)
        )


async def corrupt(here: Place, bad: Corruption) -> tuple[str, str, str]:
    """Alter the row; returns how to find the column, and its text before and after."""
    column, _, path = bad.column.partition(".")
    [(before, place)] = await here.ask(f"SELECT {column}::text, ctid FROM {bad.table} WHERE {bad.where}")
    value = _with(before, path.split("."), bad.value) if path else bad.value
    changed = f"UPDATE {bad.table} SET {column} = %s WHERE ctid = %s RETURNING ctid, {column}::text"
    [(place, after)] = await here.ask(changed, value, place)
    return place, before, after


def _with(body: str, path: list[str], value: Any) -> str:
    """Set one field of a body, and leave the rest as it was written."""
    document = inner = json.loads(body)
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    if isinstance(inner, dict):
        inner[path[-1]] = value
    return json.dumps(document, separators=(",", ":"))


async def both_ways(here: Place, monkeypatch: pytest.MonkeyPatch) -> list[Difference]:
    """Verify with the fast pass and without: the same differences."""
    found = await here.verify()
    with monkeypatch.context() as patched:
        patched.setattr(verification, "clear_plain", cleared_nothing)
        exact = await here.verify()
    assert found == exact
    return found.differences


async def cleared_nothing(*_args: object, **_options: object) -> PlainPage:
    return PlainPage()


@pytest.mark.parametrize("seed", range(4))
async def test_each_corruption_is_reported_for_its_evaluation(
    here: Place, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """In any column of any table, and in any field of a body, as the fold of the log alone reports it."""
    await here.store(*(history(WORDS, evaluation_id=key) for key in IDS))
    for bad in corruptions(Random(seed)):
        try:
            place, before, after = await corrupt(here, bad)
        except psycopg.errors.IntegrityError:
            continue  # Postgres refuses it
        differences = await both_ways(here, monkeypatch)
        named = {each.key for each in differences if each.table != "batch_progress"}
        assert named <= {bad.evaluation_id}, bad
        assert named or "." in bad.column or before == after, bad
        column = bad.column.partition(".")[0]
        await here.alter(f"UPDATE {bad.table} SET {column} = %s WHERE ctid = %s", before, place)
    assert await both_ways(here, monkeypatch) == []


@pytest.mark.parametrize("seed", range(3))
async def test_disordered_histories_have_the_same_result_both_ways(
    here: Place, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Bridged, stale, late, rejected and conflicting events are left to the fold of the log."""
    random = Random(seed)
    for _ in range(3):
        await store_badly(random, here.world, here.worker, most=12)
    assert await both_ways(here, monkeypatch) == []
    await here.ask("UPDATE scorecards SET tokens = tokens + 1 RETURNING 1")
    assert await both_ways(here, monkeypatch) != []


async def test_plain_histories_are_cleared_and_others_are_not(here: Place) -> None:
    """What a page clears needs no second look; one evaluation that is not plain holds up no other."""
    await here.store(
        *map(life, range(3)), history("queued provisioning retrying", evaluation_id="retrying")
    )
    await here.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-2'")
    batch = await read_batch(here.conn, BATCH)
    await here.conn.execute("SET TIME ZONE 'UTC'")
    page = await clear_plain(here.conn, batch, [*IDS, "retrying"], shards=4)
    assert set(page.cleared) == {"evaluation-0", "evaluation-1"}
    assert (page.events, page.open, sum(each.completed for each in page.recount.values())) == (10, 0, 2)
