"""Producers that do wrong: between a writer and the log, each spoils what passes in its own way."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from pydantic_core import from_json, to_json

from eventlog.clock import utc_now
from eventlog.codec import MAX_EVENT_BYTES, QuarantineReason, fields_of
from eventlog.events import EventKey
from eventlog.keys import events_key, shard_of, wake_key
from eventlog.log import Append, AppendResponse, AppendResult, EncodedEvent, Mode
from tests.chaos.disorder import LOSABLE, DisorderlyLog, write_plainly
from tests.chaos.run import TIMEOUT, Run
from tests.chaos.witness import WitnessedLog


def disordered(run: Run, logs: list[WitnessedLog]) -> DisorderlyLog:
    """Let each event travel alone, over several connections, late, and some of them twice."""
    return _Lossless(logs, run.rng)


class _Lossless(DisorderlyLog):
    """A network on a bad day that loses nothing."""

    def _is_lost(self, single: Append) -> bool:
        return False


class Mutating:
    """`LogWriter` that passes everything on, and then does something about some of it."""

    def __init__(self, run: Run, logs: Sequence[WitnessedLog]) -> None:
        self.shards = logs[0].shards
        self.run = run
        self.log, self.other, *_ = logs

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append, and spoil some of what is on record now."""
        replies = await self.log.append(calls)
        for call, reply in zip(calls, replies, strict=True):
            for record, answer in zip(call.records, reply.results, strict=True):
                if answer is AppendResult.OK:
                    await self.spoil(record)
        return replies

    async def spoil(self, record: EncodedEvent) -> None:
        """Do something about an event that is on record."""
        raise NotImplementedError

    async def epochs(self) -> list[str]:
        """Ask the real log."""
        return await self.log.epochs()

    async def epoch(self, evaluation_id: str) -> str:
        """Ask the real log."""
        return await self.log.epoch(evaluation_id)

    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        """Ask the real log."""
        return await self.log.committed(evaluation_ids)


class Conflicting(Mutating):
    """Another writer sends different events under some keys."""

    async def spoil(self, record: EncodedEvent) -> None:
        """Write another body under the same key, by the script or past it."""
        if self.run.rng.random() > 0.05:
            return
        event = record.event
        other = EncodedEvent(event, to_json({**from_json(record.body), "source": "impostor"}))
        poisoned = True
        if self.run.rng.random() < 0.5:
            await write_plainly(self.other, other)
        else:
            [reply] = await self.other.append([Append(event.evaluation_id, [other], "")])
            poisoned = reply.results[0] is AppendResult.CONFLICT  # an older attempt's is turned away
        if poisoned:
            self.run.expected.poison[event.evaluation_id, QuarantineReason.CONFLICT.value] += 1


class Corrupting(Mutating):
    """Some entries come a second time, spoilt beyond reading; the good one must still count."""

    async def spoil(self, record: EncodedEvent) -> None:
        """Write a spoilt entry beside a good one."""
        if self.run.rng.random() > 0.08:
            return
        reason, fields = _spoilt(self.run.rng, record)
        event = record.event
        shard = shard_of(event.evaluation_id, self.shards)
        await self.other.redis.xadd(events_key(shard, event.evaluation_id), fields)
        await self.other.redis.xadd(wake_key(shard), {"id": event.evaluation_id})
        self.run.expected.poison[event.evaluation_id, reason.value] += 1


def _spoilt(rng: Random, record: EncodedEvent) -> tuple[QuarantineReason, dict[Any, Any]]:
    """Spoil an entry in one of the ways there are; each time another, for the same is listed once."""
    event, lot = record.event, rng.randrange(10**9)
    fields = fields_of(event, record.body)
    body = {**from_json(record.body), "traceparent": str(lot)}
    match rng.choice(("torn", "noise", "future", "unknown", "invalid", "mismatch", "fat")):
        case "torn":
            return QuarantineReason.GARBAGE, {**fields, "event": to_json(body)[:-7]}
        case "noise":
            return QuarantineReason.GARBAGE, {**fields, "event": b"\xff\x00" + rng.randbytes(20)}
        case "future":
            return QuarantineReason.FUTURE_VERSION, {
                **fields,
                "event": to_json({**body, "schema_version": 99}),
            }
        case "unknown":
            return QuarantineReason.UNKNOWN_TYPE, {**fields, "event": to_json({**body, "type": "exploded"})}
        case "invalid":
            return QuarantineReason.INVALID, {
                **fields,
                "event": to_json({**body, "occurred_at": "yesterday"}),
            }
        case "mismatch":
            return QuarantineReason.MISMATCH, {
                **fields,
                "event": to_json(body),
                "sequence": event.sequence + 1,
            }
        case _:
            return QuarantineReason.OVERSIZE, {
                **fields,
                "event": to_json({**body, "fat": "x" * MAX_EVENT_BYTES}),
            }


class Dropping(Mutating):
    """Some events never arrive, although they were acknowledged; a few turn up in the end."""

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append what is not lost, and answer as if all were."""
        kept = [self._kept(call) for call in calls]
        replies = iter(await self.log.append([call for call in kept if call.records]))
        answers = []
        for call, rest in zip(calls, kept, strict=True):
            reply = next(replies) if rest.records else AppendResponse((), call.epoch)
            results = dict(zip((record.event.key for record in rest.records), reply.results, strict=True))
            answers.append(
                AppendResponse(
                    tuple(results.get(r.event.key, AppendResult.OK) for r in call.records), reply.epoch
                )
            )
        return answers

    def _kept(self, call: Append) -> Append:
        if call.mode is not Mode.NORMAL:
            return call
        records = [record for record in call.records if not self._is_lost(record)]
        return Append(call.evaluation_id, records, call.epoch, call.mode)

    def _is_lost(self, record: EncodedEvent) -> bool:
        event = record.event
        if event.type not in LOSABLE or self.run.rng.random() > 0.03:
            return False
        self.run.expected.made_away_with.add((event.evaluation_id, *event.key))
        self.run.made_away_with.append(record)
        return True


async def bring_back(run: Run, records: Sequence[EncodedEvent]) -> None:
    """Let lost events turn up after all."""
    log = WitnessedLog.seen_by(run.witness, run.world.servers.redis_url)
    for record in records:
        await write_plainly(log, record)
        run.witness.after(AppendResult.OK, record.body)
    await log.aclose()


def jumping_clock(rng: Random) -> Callable[[], datetime]:
    """Return a time that may be hours off, by another number of hours each time."""

    def now() -> datetime:
        return utc_now() + timedelta(hours=rng.choice((-30, -3, 0, 0, 2, 48)))

    return now


async def until_written(run: Run) -> None:
    """Wait for the end of the writing: the fault is in the writing itself."""
    async with asyncio.timeout(TIMEOUT):
        await run.all_written.wait()
