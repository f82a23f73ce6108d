"""Measures the evaluations per second of the whole system, and its slot utilisation.

    python -m bench.runner --json

Limit: for utilisation, the ideal slots ÷ seconds; throughput is absolute. Two runs on embedded servers,
with real processes: executors, coordinator, storage workers. The first uses a target that answers at once,
from the submission to the last scorecard, with the CPU of every process, servers included. The second uses
a target that takes a second, with 500 slots: achieved ÷ ideal, from the first claim to the last scorecard.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from rich.console import Console

from bench.cpu import family, server_pids, service_of
from eventlog.redis_streams import connect
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.local.fleet import Fleet, start
from scoreline.local.processes import process_manager
from scoreline.local.storage_workers import worker_environ
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import submit
from taskqueue.backends import Backend, open_queues

SLOT_SECONDS = 1.0


@asynccontextmanager
async def running(servers: Servers, fleet: Fleet, settings: Settings | None = None) -> AsyncIterator[None]:
    """Run a fleet; the block begins when all of its executors have reported."""
    environ = worker_environ(settings or Settings(), servers)
    redis = connect(servers.redis_url)
    executor_registry = open_queues(Backend.REDIS, redis).executor_registry
    async with process_manager(environ, log_to=sys.stderr.fileno()) as manager:
        start(fleet, manager)
        while len(await executor_registry.live()) < fleet.executors:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)  # the coordinator and the storage worker have started before them
        yield
    await redis.aclose()


async def run(servers: Servers, flags: dict[str, Any]) -> tuple[str, float]:
    """Run a batch to its end; returns its id and the seconds it took."""
    plan = make_plan(None, flags, folder=Path.cwd())
    started = time.perf_counter()
    batch_id, _ = await submit(plan, servers, Settings(), Console(stderr=True))
    async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
        while not await _is_over(conn, batch_id):  # noqa: ASYNC110 - other processes are waited for
            await asyncio.sleep(0.05)
    return batch_id, time.perf_counter() - started


async def _is_over(conn: AsyncConnection[Any], batch_id: str) -> bool:
    asked = "SELECT finished_at IS NOT NULL FROM batches WHERE batch_id = %s"
    row = await (await conn.execute(asked, [batch_id])).fetchone()
    return bool(row and row[0])


def used_by_service(root: Path) -> defaultdict[str, float]:
    """Add the CPU seconds of all processes up, by the part of the system."""
    used: defaultdict[str, float] = defaultdict(float)
    for one in family(os.getpid(), *server_pids(root)):
        used[service_of(one)] += one.cpu
    return used


async def throughput(
    servers: Servers, root: Path, *, evaluations: int, executors: int, settings: Settings | None = None
) -> dict[str, Any]:
    """Run evaluations whose target answers at once."""
    async with running(servers, Fleet("bench", executors, concurrency=256), settings):
        await run(servers, {"mode": "simulated", "limit": 500})
        before = used_by_service(root)
        _, took = await run(servers, {"mode": "simulated", "limit": evaluations})
        after = used_by_service(root)
    spent = {service: 1000 * (after[service] - before[service]) / evaluations for service in after}
    return {
        "evaluations": evaluations,
        "evaluations_per_s": round(evaluations / took, 1),
        "cpu_ms_per_evaluation": round(sum(spent.values()), 3),
        "cpu_ms_by_service": {service: round(ms, 3) for service, ms in sorted(spent.items())},
    }


async def slot_efficiency(servers: Servers, *, slots: int, rounds: int) -> dict[str, Any]:
    """Keep all slots busy with a target that takes a second."""
    evaluations = slots * rounds
    target = {"type": "simulated", "latency": SLOT_SECONDS, "jitter": 0.0}
    async with running(servers, Fleet("bench", 4, concurrency=slots // 4)):
        flags = {"mode": "simulated", "limit": evaluations, "targets": [target]}
        batch_id, _ = await run(servers, flags)
    async with await AsyncConnection.connect(servers.postgres_url) as conn:
        asked = (
            "SELECT extract(epoch FROM max(occurred_at) - min(occurred_at))::float FROM events"
            " WHERE evaluation_id LIKE %s AND type IN ('provisioning', 'completed')"
        )
        row = await (await conn.execute(asked, [f"{batch_id}.%"])).fetchone()
    took = row[0] if row else 0.0
    ideal = SLOT_SECONDS * rounds
    return {"slots": slots, "slot_seconds": round(took, 3), "slot_efficiency": round(ideal / took, 3)}


async def measure(root: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Measure both."""
    result: dict[str, Any] = {}
    with embedded_servers(root) as servers:
        await prepare(servers.postgres_url, shards=Settings().shards)
        result |= await throughput(servers, root, evaluations=args.evaluations, executors=args.executors)
        print(result, file=sys.stderr)
        if args.rounds:
            result |= await slot_efficiency(servers, slots=args.slots, rounds=args.rounds)
    return result


def main() -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--executors", type=int, default=2)
    parser.add_argument("--slots", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=60, help="seconds of work for each slot")
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        result = asyncio.run(measure(Path(root), args))
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
