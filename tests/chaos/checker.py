"""The checker: whatever happened, the tables must be such that nobody could tell.

One function, run after every fault. It asks Postgres alone, and at the end Redis for what is in hand.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from psycopg import AsyncConnection
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from eventlog import payloads as p
from eventlog.codec import decode_body
from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS, GROUP, wake_key
from eventlog.lifecycle import ENDED, State, Unopened, evolve, phase_of
from scoreline.embedded import Servers
from tests.waiting import until

Rows = list[tuple[Any, ...]]

COUNTERS = (
    "SELECT total, pending, completed, passed, failed, timed_out, cancelled, bridged FROM batch_status"
)
RECOUNT = """
SELECT (SELECT count(*) FROM evaluations),
       (SELECT count(*) FROM evaluations WHERE ended_at IS NULL),
       count(*) FILTER (WHERE status = 'completed'),
       count(*) FILTER (WHERE verdict = 'passed'),
       count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'timed_out'),
       count(*) FILTER (WHERE status = 'cancelled'),
       (SELECT count(*) FROM gap_bridges)
FROM scorecards
"""
"""The same from the rows themselves: a batch has the database to itself here."""
REPEATED = """
SELECT evaluation_id, attempt, sequence FROM events
GROUP BY 1, 2, 3 HAVING count(*) > 1
"""
APPLIED = """
SELECT evaluation_id, event::text FROM events
WHERE verdict = 'applied' ORDER BY evaluation_id, attempt, sequence
"""
MISSING = """
SELECT evaluation_id, attempt, generate_series(lower(hole), upper(hole) - 1)
FROM gap_bridges, unnest(missing) AS hole
"""


async def check(servers: Servers, expected: Iterable[str], *, lossless: bool = True) -> None:
    """Fail unless every promise about these evaluations is kept; where none got lost, none is bridged."""
    async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
        rows = await _ask(conn, "SELECT evaluation_id, attempt, sequence, state FROM evaluations")
        assert {row[0] for row in rows} == set(expected)
        assert {row[3] for row in rows} <= {phase.value for phase in ENDED}
        assert await _ask(conn, REPEATED) == []
        assert await _ask(conn, COUNTERS) == await _ask(conn, RECOUNT)
        cards = await _ask(conn, "SELECT evaluation_id, attempt, status FROM scorecards")
        assert sorted(cards) == sorted((key, attempt, state) for key, attempt, _, state in rows)
        missing = await _ask(conn, MISSING)
        assert not (lossless and missing)
        histories = _histories(await _ask(conn, APPLIED))
        _check_histories(rows, histories, missing)
        if not missing:
            spent = await _ask(conn, "SELECT tokens FROM batch_status")
            assert spent == [(sum(map(_tokens, histories.values())),)]
    await until(lambda: nothing_in_hand(servers), 30)


async def nothing_in_hand(servers: Servers) -> bool:
    """Whether every wake-up that was handed out is acknowledged, and none waits."""
    async with Redis.from_url(servers.redis_url) as redis:
        for shard in range(DEFAULT_SHARDS):
            try:
                [group] = await redis.xinfo_groups(wake_key(shard))
            except (ResponseError, ValueError):
                return False  # flushed: a worker is about to make it anew
            assert group["name"] == GROUP.encode()
            if group["pending"] or group["lag"]:
                return False
    return True


async def _ask(conn: AsyncConnection[Any], statement: str) -> Rows:
    return await (await conn.execute(statement.encode())).fetchall()


def _histories(rows: Rows) -> dict[str, list[Event]]:
    histories: dict[str, list[Event]] = defaultdict(list)
    for evaluation_id, body in rows:
        histories[evaluation_id].append(decode_body(body.encode()))
    return histories


def _check_histories(rows: Rows, histories: dict[str, list[Event]], missing: Rows) -> None:
    stepped_over: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for evaluation_id, attempt, sequence in missing:
        stepped_over[evaluation_id].add((attempt, sequence))
    for evaluation_id, attempt, sequence, state in rows:
        events = histories[evaluation_id]
        assert events[-1].key == (attempt, sequence)
        if evaluation_id in stepped_over:
            _check_holes(events, stepped_over[evaluation_id])
        else:
            assert phase_of(_folded(events)) == state


def _folded(events: list[Event]) -> State:
    """Replay a history; what is not contiguous or not legal raises."""
    state: State = Unopened()
    for event in events:
        state = evolve(state, event)
    return state


def _check_holes(events: list[Event], stepped_over: set[tuple[int, int]]) -> None:
    """Every hole in what was applied is one that a bridge names, or was waiting beyond one that does."""
    present = {event.key for event in events}
    for attempt, last in {event.attempt: event.sequence for event in events}.items():
        holes = {(attempt, sequence) for sequence in range(last)} - present
        assert not holes or holes & stepped_over


def _tokens(events: list[Event]) -> int:
    return sum(event.data.usage.total for event in events if isinstance(event.data, p.Responded | p.Scored))
