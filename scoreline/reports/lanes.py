"""What blocks the lanes of a batch, since when, until when, and how many tasks wait for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis

from executor.lanes.contract import BlockedBy, LaneLimit, LanesUnavailable, LaneView
from executor.lanes.redis_lanes import RedisLanes
from scoreline.formatting import clock, counted, printable, span
from taskqueue.queue_layout import queue_name
from taskqueue.redis_batch_registry import RedisBatchRegistry
from taskqueue.redis_streams import RedisTaskQueue
from taskqueue.tasks import QueueUnavailable


@dataclass(frozen=True, slots=True)
class LaneWait:
    """A lane, and the number of tasks that wait for it."""

    view: LaneView
    behind: int
    """Ready tasks of this batch that need the lane and are not claimed."""


async def read_lanes(redis: Redis, batch_id: str) -> tuple[LaneWait, ...]:
    """Return the lanes that a batch needs; none where Redis is unavailable."""
    try:
        partitions = await RedisBatchRegistry(redis).lanes(batch_id)
        queues = [queue_name(batch_id, partition) for partition in partitions]
        counts = await RedisTaskQueue(redis).counts(queues)
        behind: dict[str, int] = {}
        for lanes, count in zip(partitions.values(), counts, strict=True):
            for lane in lanes:
                behind[lane] = behind.get(lane, 0) + count.ready
        views = await RedisLanes(redis).views(list(behind))
    except (QueueUnavailable, LanesUnavailable):
        return ()
    return tuple(LaneWait(view, behind[view.lane]) for view in views)


def lane_lines(waits: Sequence[LaneWait], now: datetime) -> Iterator[str]:
    """Return a line for each lane that blocks tasks."""
    for wait in waits:
        if wait.view.blocked_by and (wait.behind or _blocks_claimed_tasks(wait.view)):
            reason = _reason(wait.view, wait.view.blocked_by, now)
            yield f"{reason}{_since(wait.view, now)}; {_behind(wait)}."


def limit_lines(waits: Sequence[LaneWait]) -> Iterator[str]:
    """Return a line for each lane with its limits in force and the batch that declared each."""
    for wait in waits:
        if wait.view.limits:
            limits = "; ".join(map(_limit, wait.view.limits))
            yield f"Limits in force on {printable(wait.view.lane)}: {limits}."


def _limit(limit: LaneLimit) -> str:
    values = {
        "requests a minute": limit.rpm,
        "tokens a minute": limit.tpm,
        "calls in flight": limit.max_concurrency,
        "s between two calls": limit.gap or None,
    }
    limits = ", ".join(f"{_number(value)} {unit}" for unit, value in values.items() if value is not None)
    batch_id, key = _origin(limit)
    return f"{limits} (batch {printable(batch_id)}, {printable(key)})"


def _origin(limit: LaneLimit) -> tuple[str, str]:
    batch_id, _, key = limit.origin.partition(" ")
    return batch_id, key


def _declared_by(view: LaneView, reason: BlockedBy) -> str:
    """Return the batch whose limit blocks calls; empty for a limit of the provider or a learnt one."""
    for limit in view.limits:
        is_blocking = {
            BlockedBy.RATE: limit.rpm is not None and limit.rpm == view.rpm,
            BlockedBy.TOKENS: limit.tpm is not None and limit.tpm == view.tpm,
            BlockedBy.CONCURRENCY: limit.max_concurrency is not None
            and limit.max_concurrency <= view.in_flight,
            BlockedBy.GAP: limit.gap > 0 and limit.gap == max(each.gap for each in view.limits),
        }
        if is_blocking.get(reason):
            batch_id, key = _origin(limit)
            return f" (batch {printable(batch_id)}, {printable(key)})"
    return ""


def _blocks_claimed_tasks(view: LaneView) -> bool:
    """Whether claimed tasks may wait for the lane, though no ready task does."""
    return view.blocked_by in {BlockedBy.BREAKER, BlockedBy.RETRY_AFTER} and view.until is not None


def _reason(view: LaneView, reason: BlockedBy, now: datetime) -> str:
    lane, origin = printable(view.lane), _declared_by(view, reason)
    match reason:
        case BlockedBy.RATE:
            return f"{lane} is at its limit of {_number(view.rpm)} requests a minute{origin}"
        case BlockedBy.TOKENS:
            used = f"{lane} has used up its {_number(view.tpm)} tokens a minute{origin}"
            return f"{used}{_next(view, now)}"
        case BlockedBy.CONCURRENCY:
            calls = counted(view.in_flight, "call")
            return f"{lane} has {calls} in flight, as many as it takes{origin}"
        case BlockedBy.GAP:
            return f"{lane} leaves a gap between two calls{origin}{_next(view, now)}"
        case BlockedBy.RETRY_AFTER:
            return f"{lane} is throttled by the provider (Retry-After){_next(view, now)}"
        case BlockedBy.BREAKER:
            failed = counted(view.failures, "call")
            return f"{lane} does not answer: {failed} in a row failed{_probe(view, now)}"
        case _:
            raise ValueError(f"no reason: {reason!r}")


def _number(limit: float | None) -> str:
    return "some" if limit is None else f"{limit:,.0f}" if limit >= 10 else f"{limit:g}"


def _next(view: LaneView, now: datetime) -> str:
    return f", the next call may start {_when(view.until, now)}" if view.until else ""


def _probe(view: LaneView, now: datetime) -> str:
    if view.until is not None:
        return f", one call will try again {_when(view.until, now)}"
    return ", one call is trying again" if view.in_flight else ", the next call will try again"


def _when(moment: float, now: datetime) -> str:
    at = datetime.fromtimestamp(moment, UTC)
    return f"in {span(at - now)}, at {clock(at)} UTC" if at > now else "now"


def _since(view: LaneView, now: datetime) -> str:
    return f" (for {span(now - datetime.fromtimestamp(view.since, UTC))})" if view.since else ""


def _behind(wait: LaneWait) -> str:
    return f"{counted(wait.behind, 'task')} behind it" if wait.behind else "no task waits for it now"


def lanes_document(waits: Sequence[LaneWait]) -> list[dict[str, Any]]:
    """Return the lanes as JSON."""
    return [
        {
            "lane": wait.view.lane,
            "waits_for": wait.view.blocked_by,
            "since": _iso(wait.view.since),
            "until": _iso(wait.view.until),
            "behind": wait.behind,
            "rpm": wait.view.rpm,
            "tpm": wait.view.tpm,
            "in_flight": wait.view.in_flight,
            "concurrency": wait.view.concurrency,
            "breaker": wait.view.breaker,
            "calls": wait.view.granted,
            "rate_limited": wait.view.rate_limited,
            "limits": [_limit_document(each) for each in wait.view.limits],
        }
        for wait in waits
    ]


def _limit_document(limit: LaneLimit) -> dict[str, Any]:
    batch_id, key = _origin(limit)
    return {
        "batch_id": batch_id,
        "key": key,
        "rpm": limit.rpm,
        "tpm": limit.tpm,
        "max_concurrency": limit.max_concurrency,
        "delay": limit.gap or None,
    }


def _iso(moment: float | None) -> str | None:
    return datetime.fromtimestamp(moment, UTC).isoformat() if moment else None
