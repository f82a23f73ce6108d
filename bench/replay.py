"""Measures how fast a batch is verified and rebuilt, against plainly reading its events, and peak memory.

    python -m bench.replay --json

Limit: the unavoidable work: fetching every event of the batch in order with a plain cursor, a page at a
time, without processing any. Verification and rebuild use as many processes as the command does. Memory is
the peak of the largest process, with the batch and with one a quarter the size. CPU is that of the
command's processes and of Postgres, for each event: on a loaded machine, compare that.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from bench.cpu import family, server_pids
from bench.histories import life
from eventlog.codec import Entry
from eventlog.keys import shard_of
from eventlog.timeline import Cursor, replay
from projections.database.connection import make_pool
from projections.database.readiness import prepare
from projections.folds.change import Change, EvaluationRow, fold
from projections.store.postgres import PostgresStore
from projections.verification.page_workers import processes_for
from projections.verification.pages import PAGE, read_batch
from projections.verification.rebuild import rebuild
from projections.verification.verify import verify
from scoreline.local.embedded import embedded_servers

SHARDS = 4


async def fill(url: str, batch_id: str, evaluations: int) -> None:
    """Store complete lives as a storage worker does, without the way through Redis."""
    async with make_pool(url, size=1) as pool:
        tables = PostgresStore(pool)
        month = (await tables.months([batch_id]))[batch_id]
        for first in range(0, evaluations, 2_000):
            numbers = range(first, min(first + 2_000, evaluations))
            await tables.commit([_change(number, batch_id, month) for number in numbers])
    async with await AsyncConnection.connect(url, autocommit=True) as conn:
        await conn.execute("VACUUM ANALYZE")


def _change(number: int, batch_id: str, month: Any) -> Change:  # noqa: ANN401 - as the tables gave it
    records = life(number, batch_id)
    key = records[0].event.evaluation_id
    entries = [Entry(b"%d-%d" % (number + 1, at), *record) for at, record in enumerate(records)]
    row = EvaluationRow(key, batch_id, month, Cursor())
    return fold(row, shard_of(key, SHARDS), replay(row.cursor, entries), exists=False)


async def plain_read(url: str, batch_id: str) -> int:
    """Fetch all events of a batch, page by page, and do nothing with them."""
    asked = (
        "SELECT e.month, e.evaluation_id, e.attempt, e.sequence, e.type, e.verdict, e.occurred_at,"
        " e.entry_id, e.event::text FROM evaluations v"
        " JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id"
        " WHERE v.batch_id = %s ORDER BY v.evaluation_id, e.attempt, e.sequence"
    )
    read = 0
    async with (
        await AsyncConnection.connect(url) as conn,
        conn.cursor("plain", binary=True) as cursor,
    ):
        await cursor.execute(asked, [batch_id])
        while rows := await cursor.fetchmany(PAGE * 4):
            read += len(rows)
    return read


async def verified(url: str, batch_id: str) -> int:
    """Verify a batch; returns its events."""
    async with await AsyncConnection.connect(url) as conn:
        total = (await read_batch(conn, batch_id)).evaluations
        await conn.rollback()
        result = await verify(conn, batch_id, shards=SHARDS, processes=processes_for(total))
    if result.differing:
        raise RuntimeError(f"the tables differ: {result.differences[0]}")
    return result.events


async def rebuilt(url: str, batch_id: str) -> int:
    """Rebuild a batch; returns its events."""
    async with await AsyncConnection.connect(url) as conn:
        total = (await read_batch(conn, batch_id)).evaluations
        await conn.rollback()
        return (await rebuild(conn, batch_id, shards=SHARDS, processes=processes_for(total))).events


WORK = {"read": plain_read, "verify": verified, "rebuild": rebuilt}


class Run(NamedTuple):
    """Events a second, CPU of the command and of Postgres for each event in µs, and peak memory in MB."""

    speed: float
    cpu_us: float
    peak: float


def _timed(name: str, url: str, batch_id: str, servers: Sequence[int]) -> Run:
    started, before = time.perf_counter(), _cpu(servers)
    events = asyncio.run(WORK[name](url, batch_id))
    took, used = time.perf_counter() - started, _cpu(servers) - before
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)  # of the children, the largest
    peak = max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024
    return Run(events / took, used / events * 1e6, peak)


def _cpu(servers: Sequence[int]) -> float:
    return sum(used.cpu for used in family(os.getpid(), *servers))


def alone(name: str, url: str, batch_id: str, servers: Sequence[int]) -> Run:
    """Do something in a process of its own."""
    # Not a Pool, whose processes may have no children.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(_timed, name, url, batch_id, servers).result()


def measure(url: str, servers: Sequence[int], evaluations: int, rounds: int) -> dict[str, object]:
    """Measure in turn, several times."""
    asyncio.run(prepare(url, shards=SHARDS))
    asyncio.run(fill(url, "small", evaluations // 4))
    asyncio.run(fill(url, "large", evaluations))
    runs: dict[str, list[Run]] = {name: [] for name in WORK}
    for _ in range(rounds):
        for name in WORK:
            run = alone(name, url, "large", servers)
            runs[name].append(run)
            used = f"{run.cpu_us:.1f} µs of CPU each, peak {run.peak:.0f} MB"
            print(f"{name}: {run.speed:,.0f} events/s, {used}", file=sys.stderr)
    small = {name: alone(name, url, "small", servers).peak for name in ("verify", "rebuild")}
    return {"evaluations": evaluations, "events": evaluations * 4} | _summed_up(runs, small)


def _summed_up(runs: dict[str, list[Run]], small: dict[str, float]) -> dict[str, object]:
    limit = median(run.speed for run in runs["read"])
    found: dict[str, object] = {
        "read_events_per_s": round(limit),
        "read_cpu_us": round(median(run.cpu_us for run in runs["read"]), 1),
    }
    for name, small_peak in small.items():
        found[f"{name}_events_per_s"] = round(median(run.speed for run in runs[name]))
        found[f"{name}_ratio"] = round(median(run.speed for run in runs[name]) / limit, 3)
        found[f"{name}_cpu_us"] = round(median(run.cpu_us for run in runs[name]), 1)
        found[f"{name}_peak_mb"] = round(median(run.peak for run in runs[name]))
        found[f"{name}_peak_mb_of_a_quarter"] = round(small_peak)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        embedded_servers(Path(root)) as servers,
    ):
        result = measure(servers.postgres_url, server_pids(Path(root)), args.evaluations, args.rounds)
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
