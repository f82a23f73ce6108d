"""Measures what an evaluation costs Redis, step by step, against plain XADDs of the same entries.

    python -m bench.append --json

Limit: the floor, the same five entries as plain XADD commands in pipelines, with no check at all. Both are
measured in turn on one server, as CPU of its process; the ratio is floor ÷ appends.
"""

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from bench.cpu import server_pids
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.codec import encode, fields_of, make_event
from eventlog.keys import shard_of
from eventlog.log import Append, CommitMark, EncodedEvent, Mode
from eventlog.redis_streams import RedisEventLog
from scoreline.local.embedded import embedded_servers
from taskqueue.backends import Backend, open_queues
from taskqueue.tasks import Task

WINDOW = 250
"""Evaluations in one round trip."""


def life(key: str) -> list[EncodedEvent]:
    """Make the five events that an executor records of an evaluation that answers at once."""
    payloads: tuple[p.AnyPayload, ...] = (
        p.Queued(case=p.Case(id=key, input="What is 2 + 2?", expected="4")),
        p.Provisioning(executor="bench-1", nonce="1"),
        p.Running(target="simulated", process="1"),
        p.Responded(output="4", usage=p.TokenUsage(input_tokens=9, output_tokens=1), latency_ms=12.5),
        p.Completed(
            verdict="passed", score=1.0, scores=(p.Score(evaluator="exact", score=1.0, passed=True),)
        ),
    )
    events = [
        make_event(
            payload,
            evaluation_id=key,
            batch_id="bench",
            attempt=1,
            sequence=sequence,
            occurred_at=utc_now(),
            source="bench",
        )
        for sequence, payload in enumerate(payloads)
    ]
    return [EncodedEvent(event, encode(event)) for event in events]


class ServerCpu:
    """CPU seconds of the server by step, from the scheduler's own account in nanoseconds."""

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._last = self._read()
        self.steps: defaultdict[str, float] = defaultdict(float)

    def add(self, step: str) -> None:
        """Book what was used since the last call."""
        now = self._read()
        self.steps[step] += now - self._last
        self._last = now

    def _read(self) -> float:
        return sum(int((task / "schedstat").read_text().split()[0]) for task in self._tasks.iterdir()) / 1e9


async def plain(redis: Redis, lives: Sequence[list[EncodedEvent]], cpu: ServerCpu) -> None:
    """Write the entries with plain XADDs: an evaluation's five, in three round trips like the appends."""
    for part in (slice(0, 1), slice(1, 2), slice(2, 5)):
        async with redis.pipeline(transaction=False) as pipe:
            for life in lives:
                for event, body in life[part]:
                    fields: Any = fields_of(event, body)
                    pipe.xadd(f"plain:{event.evaluation_id}", fields)
            await pipe.execute()
    cpu.add("plain XADDs")


async def appended(log: RedisEventLog, lives: Sequence[list[EncodedEvent]], cpu: ServerCpu) -> None:
    """Let evaluations live in the log and the queue as coordinator, executor and storage worker do."""
    tasks, epochs = open_queues(Backend.REDIS, log.redis).tasks, await log.epochs()
    ids = [life[0].event.evaluation_id for life in lives]

    async def append(part: slice, mode: Mode) -> None:
        calls = [
            Append(key, life[part], epochs[shard_of(key, log.shards)], mode)
            for key, life in zip(ids, lives, strict=True)
        ]
        await log.append(calls)

    cpu.add("between")
    await append(slice(0, 1), Mode.OPENING)
    cpu.add("append of the opening")
    await tasks.enqueue_batch("bench", [Task(key, 1) for key in ids])
    deliveries = await tasks.consume("bench", {"bench": len(ids)}, block=timedelta(0))
    cpu.add("enqueue and take")
    await append(slice(1, 2), Mode.CLAIM)
    cpu.add("append of the claim")
    await append(slice(2, 5), Mode.NORMAL)
    cpu.add("append of the rest")
    await tasks.ack("bench", deliveries)
    cpu.add("ack")
    await log.read(ids, limit=100)
    cpu.add("read")
    await log.settle([CommitMark(key, 1, 4, ended=True) for key in ids])
    await log.committed(ids)
    cpu.add("marks")


async def measure(redis_url: str, pid: int, evaluations: int) -> dict[str, object]:
    """Measure both in turn."""
    log, cpu = RedisEventLog.from_url(redis_url), ServerCpu(pid)
    for at in range(0, evaluations, WINDOW):
        lives = [life(f"bench-{number:07}") for number in range(at, at + WINDOW)]
        cpu.add("between")
        await plain(log.redis, lives, cpu)
        await appended(log, lives, cpu)
    await log.aclose()
    us = {step: round(1e6 * used / evaluations, 1) for step, used in cpu.steps.items() if step != "between"}
    appends = sum(used for step, used in us.items() if step.startswith("append"))
    floor = us.pop("plain XADDs")
    return {
        "evaluations": evaluations,
        "cpu_us_per_evaluation": round(sum(us.values()), 1),
        "by_step": us,
        "plain_xadds_us": floor,
        "ratio": round(floor / appends, 3),
    }


def main() -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        embedded_servers(Path(root)) as servers,
    ):
        pid = next(
            pid for pid in server_pids(Path(root)) if "valkey" in Path(f"/proc/{pid}/exe").readlink().name
        )
        result = asyncio.run(measure(servers.redis_url, pid, args.evaluations))
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
