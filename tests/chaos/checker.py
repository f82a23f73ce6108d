"""The checker: whatever happened, the tables must be as without it. It asserts nothing.

`projections.verification.verify` compares the tables with the log. Here is what the log itself can't
know: what the log acknowledged was on record, what they paid, which poison was put in, which events were
made away with; and that nothing is left pending in Redis.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection
from redis.asyncio import Redis
from redis.exceptions import RedisError

from eventlog.codec import QuarantineReason
from eventlog.keys import DEFAULT_SHARDS, GROUP, wake_key
from projections.database.errors import UnknownBatch
from projections.verification.verify import verify
from tests.chaos.findings import Findings
from tests.chaos.witness import EventName

Conn = AsyncConnection[Any]

EVALUATIONS = "SELECT evaluation_id, ended_at IS NOT NULL FROM evaluations WHERE batch_id = %s"
EVENTS = """
SELECT evaluation_id, attempt, sequence, event::text, verdict
FROM events WHERE evaluation_id = ANY(%s)
"""
BRIDGED = """
SELECT evaluation_id, attempt, generate_series(lower(hole), upper(hole) - 1)
FROM gap_bridges, unnest(missing) AS hole WHERE evaluation_id = ANY(%s)
"""
QUARANTINED = """
SELECT evaluation_id, reason FROM quarantine
WHERE starts_with(evaluation_id, %(batch)s)
   OR (evaluation_id IS NULL AND position(%(batch)s::bytea IN body) > 0)
"""
TOKENS = "SELECT coalesce(sum(tokens), 0) FROM batch_progress WHERE batch_id = %s"


@dataclass(slots=True)
class Expected:
    """What must be true of a batch when all is over."""

    batch_id: str
    evaluations: set[str]
    acknowledged: Mapping[EventName, bytes] = field(default_factory=dict)
    """Events that were acknowledged to their writers."""
    tokens: tuple[int, int] = (0, 0)
    """The least and the most that can have been paid: two numbers only where a writer died unheard."""
    poison: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    """What belongs into the quarantine: evaluation and reason."""
    made_away_with: set[EventName] = field(default_factory=set)
    """Events that were dropped on their way: only these may be bridged."""
    verdicts: frozenset[str] = frozenset({"applied"})
    """What may have become of events."""


async def check(conn: Conn, expected: Expected) -> Findings:
    """Compare a batch with what is expected of it."""
    found = Findings()
    await _check_evaluations(conn, expected, found)
    await _check_events(conn, expected, found)
    await _check_bridges(conn, expected, found)
    await _check_quarantine(conn, expected, found)
    await _check_tokens(conn, expected, found)
    await _check_tables(conn, expected, found)
    return found


async def _check_evaluations(conn: Conn, expected: Expected, found: Findings) -> None:
    ended = dict(await _ask(conn, EVALUATIONS, expected.batch_id))
    found.lost += sorted(expected.evaluations - ended.keys())
    found.stuck += sorted(key for key, is_over in ended.items() if not is_over)
    found.violations += (
        f"{key}: no writer wrote it" for key in sorted(ended.keys() - expected.evaluations)
    )


async def _check_events(conn: Conn, expected: Expected, found: Findings) -> None:
    rows = await _ask(conn, EVENTS, sorted(expected.evaluations))
    stored = {(key, attempt, sequence): body.encode() for key, attempt, sequence, body, _ in rows}
    times = Counter((key, attempt, sequence) for key, attempt, sequence, *_ in rows)
    found.doubled += (f"event {name} stored {n} times" for name, n in times.items() if n > 1)
    for name, body in expected.acknowledged.items():
        if name not in stored:
            found.lost.append(f"event {name}, acknowledged")
        elif stored[name] != body:
            found.violations.append(f"event {name} is not the one that was acknowledged")
    verdicts = Counter(verdict for *_, verdict in rows)
    found.paths.update(verdicts)
    found.violations += (
        f"{n} events are {verdict}" for verdict, n in verdicts.items() if verdict not in expected.verdicts
    )


async def _check_bridges(conn: Conn, expected: Expected, found: Findings) -> None:
    for name in await _ask(conn, BRIDGED, sorted(expected.evaluations)):
        found.paths["bridged"] += 1
        if name not in expected.made_away_with:
            found.violations.append(f"event {name} was bridged, though it was not made away with")


async def _check_quarantine(conn: Conn, expected: Expected, found: Findings) -> None:
    rows = await (await conn.execute(QUARANTINED, {"batch": expected.batch_id})).fetchall()
    listed: Counter[tuple[str | None, str]] = Counter((key, reason) for key, reason in rows)
    found.paths.update(f"quarantined: {reason}" for _, reason in rows)
    for what, missing in (expected.poison - listed).items():
        found.lost.append(f"{missing} of {what} is not in the quarantine")
    for what, more in (listed - expected.poison).items():
        found.violations.append(f"{more} of {what} in the quarantine, which no row put in")


async def _check_tokens(conn: Conn, expected: Expected, found: Findings) -> None:
    [[tokens]] = await _ask(conn, TOKENS, expected.batch_id)
    least, most = expected.tokens
    if tokens < least:
        found.lost.append(f"{least - tokens} tokens that were paid for are not counted")
    elif tokens > most:
        found.doubled.append(f"{tokens - most} tokens are counted that were not paid for")


async def _check_tables(conn: Conn, expected: Expected, found: Findings) -> None:
    try:
        verified = await verify(conn, expected.batch_id, shards=DEFAULT_SHARDS)
    except UnknownBatch as unknown:
        found.lost.append(str(unknown))
        return
    found.violations += map(str, verified.differences)


async def pending_work(redis: Redis) -> str:
    """Return what is still pending or unread; nothing if all is done."""
    for stream in map(wake_key, range(DEFAULT_SHARDS)):
        try:
            groups = {group["name"].decode(): group for group in await redis.xinfo_groups(stream)}
            group = groups[GROUP]
            unread = await redis.xrange(stream, min=f"({group['last-delivered-id'].decode()}", count=1)
        except (RedisError, KeyError) as error:  # lost: a worker is about to make it anew
            return f"{stream}: {type(error).__name__} {error}"
        if unread or group["pending"]:
            return f"{stream}: {group['pending']} pending, {len(unread or ())} or more unread"
    return ""


async def wait_for_empty_hands(redis_url: str, seconds: float) -> str:
    """Wait until nothing is pending, and return what still is when the time is up."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + seconds
    async with Redis.from_url(redis_url) as redis:
        while (left := await pending_work(redis)) and loop.time() < give_up:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.02)
    return left


def poison(
    evaluation_ids: Iterable[str | None], reason: QuarantineReason
) -> Counter[tuple[str | None, str]]:
    """Expect so many entries of the quarantine, for one reason."""
    return Counter((key, reason.value) for key in evaluation_ids)


async def _ask(conn: Conn, statement: str, *values: object) -> list[tuple[Any, ...]]:
    return await (await conn.execute(statement.encode(), values)).fetchall()
