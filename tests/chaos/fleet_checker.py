"""What must hold of a batch that a fleet was given, besides what must hold of any.

    over         the batch is finished, and of its evaluations none failed but those that took three
                 executors with them, or needed the answer of one that did
    paid once    an answer or a paid score on record is not bought again by the next claim
    cleared up   nothing of it is in the registry or in the queue, and what is left of it in Redis expires

All of it is read from the log and from Redis; only what was paid at most comes from the record of calls.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from psycopg import OperationalError
from redis.asyncio import Redis

from coordinator.attempts import LOST_LIMIT
from taskqueue import keys
from tests.chaos.answering import ANSWER, JUDGEMENT, RecordedCalls
from tests.chaos.run import TIMEOUT, Run
from tests.waiting import until

FINISHED = "SELECT state FROM batches WHERE batch_id = %s AND finished_at IS NOT NULL"
EVENTS = """
SELECT evaluation_id, attempt, type, entry_id, coalesce((event->'data'->>'cached')::boolean, false),
       coalesce(event->'data'->>'reason', '')
FROM events WHERE evaluation_id = ANY(%s)
ORDER BY evaluation_id, attempt, sequence
"""
ENDED_BADLY = """
SELECT evaluation_id, attempt, status, verdict, coalesce(error->>'kind', '')
FROM scorecards WHERE batch_id = %s AND (status, verdict) IS DISTINCT FROM ('completed', 'passed')
"""
PAID = {"responded", "scored"}
GIVEN_UP = {"lost", "dependency"}


class Seen(NamedTuple):
    """One event of an evaluation, as the log for good has it."""

    attempt: int
    type: str
    entry_id: str
    cached: bool
    reason: str

    @property
    def arrived(self) -> tuple[int, ...]:
        """When it came into Redis; openings come from Postgres."""
        return tuple(map(int, self.entry_id.split("-")))


async def check_fleet(run: Run, recorded: RecordedCalls) -> None:
    """Wait until the batch is over, and complain of all that is not as it should be."""
    await until(lambda: is_over(run), TIMEOUT)
    async with run.world.postgres() as conn:
        badly = await (await conn.execute(ENDED_BADLY, [run.batch_id])).fetchall()
        events = await (await conn.execute(EVENTS, [sorted(run.expected.evaluations)])).fetchall()
    lives = _by_evaluation(events)
    run.complaints += _unreasonable(badly)
    run.complaints += (line for key, seen in lives.items() for line in bought_again(key, seen))
    least = (len(run.expected.evaluations) - len(badly)) * (ANSWER.total + JUDGEMENT.total)
    run.expected.tokens = (least, recorded.most_paid)
    run.notes.update(_paths([seen for life in lives.values() for seen in life]))
    run.notes["given up"] += len(badly)
    run.complaints += await _left_for_good(run)


def _paths(events: Sequence[Seen]) -> Counter[str]:
    """Count how often work began again, and how often an answer was on record already."""
    reasons = {"lost": "owner lost", "retry": "tried again"}
    found = Counter(reasons[one.reason] for one in events if one.type == "queued" and one.reason in reasons)
    found["answer found on record"] = sum(one.type == "responded" and one.cached for one in events)
    return found


async def _left_for_good(run: Run) -> list[str]:
    """Wait until nothing is left of the batch, and return what still is when the time is up."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + TIMEOUT / 3
    while (left := await _leftovers(run)) and loop.time() < give_up:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.02)
    return left


async def is_over(run: Run) -> bool:
    """Whether the coordinator has written down that the batch is over."""
    try:
        async with run.world.postgres() as conn:
            return await (await conn.execute(FINISHED, [run.batch_id])).fetchone() is not None
    except OperationalError:
        return False


def _by_evaluation(rows: Iterable[Sequence[Any]]) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = defaultdict(list)
    for key, *seen in rows:
        found[key].append(Seen(*seen))
    return found


def _unreasonable(badly: Iterable[Sequence[Any]]) -> list[str]:
    """Pick those that had no reason to end as they did."""
    return [
        f"{key} is {status} ({verdict}, {kind}) in attempt {attempt}"
        for key, attempt, status, verdict, kind in badly
        if kind not in GIVEN_UP or (kind == "lost" and attempt <= LOST_LIMIT)
    ]


def bought_again(key: str, seen: Sequence[Seen]) -> list[str]:
    """Name attempts that paid for what was on record when they were claimed."""
    claims = {one.attempt: one.arrived for one in seen if one.type == "provisioning"}
    paid = [one for one in seen if one.type in PAID and not one.cached]
    return [
        f"{key}: attempt {later.attempt} bought what attempt {earlier.attempt} had {earlier.type}"
        for later in paid
        for earlier in paid
        if earlier.type == later.type
        and earlier.attempt < later.attempt
        and earlier.arrived < claims.get(later.attempt, ())
    ]


async def _leftovers(run: Run) -> list[str]:
    """Name what is left of a batch in Redis and will not go away by itself."""
    async with Redis.from_url(run.world.servers.redis_url) as redis:
        found = [key async for key in redis.scan_iter(match=f"*{run.batch_id}*", count=1_000)]
        left = [key.decode() for key in found if await redis.ttl(key) == -1]
        up = (
            [f"in the batch registry: {run.batch_id}"]
            if await redis.hexists(keys.BATCHES, run.batch_id)
            else []
        )
    return up + [f"left in Redis: {key}" for key in sorted(left)]
