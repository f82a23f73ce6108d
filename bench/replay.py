"""Measures how fast a batch is verified and rebuilt, against plainly reading its events, and peak memory.

    python -m bench.replay --json

Limit: the unavoidable work: fetching every event of the batch in order with a plain cursor, a page at a
time, without processing any. Verification and rebuild use as many processes as the command does. Memory is
the peak of the largest process, with the batch and with one a quarter the size.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from psycopg import AsyncConnection

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


def _timed(name: str, url: str, batch_id: str) -> tuple[float, float]:
    started = time.perf_counter()
    events = asyncio.run(WORK[name](url, batch_id))
    took = time.perf_counter() - started
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)  # of the children, the largest
    return events / took, max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024


def alone(name: str, url: str, batch_id: str) -> tuple[float, float]:
    """Do something in a process of its own; returns events a second, and its peak memory in MB."""
    # Not a Pool, whose processes may have no children.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(_timed, name, url, batch_id).result()


def measure(url: str, evaluations: int, rounds: int) -> dict[str, object]:
    """Measure in turn, several times."""
    asyncio.run(prepare(url, shards=SHARDS))
    asyncio.run(fill(url, "small", evaluations // 4))
    asyncio.run(fill(url, "large", evaluations))
    speeds: dict[str, list[float]] = {name: [] for name in WORK}
    peaks: dict[str, list[float]] = {name: [] for name in WORK}
    for _ in range(rounds):
        for name in WORK:
            speed, peak = alone(name, url, "large")
            speeds[name].append(speed)
            peaks[name].append(peak)
            print(f"{name}: {speed:,.0f} events/s, peak {peak:.0f} MB", file=sys.stderr)
    small = {name: alone(name, url, "small")[1] for name in ("verify", "rebuild")}
    return {"evaluations": evaluations, "events": evaluations * 4} | _summed_up(speeds, peaks, small)


def _summed_up(
    speeds: dict[str, list[float]], peaks: dict[str, list[float]], small: dict[str, float]
) -> dict[str, object]:
    limit = median(speeds["read"])
    found: dict[str, object] = {"read_events_per_s": round(limit)}
    for name, small_peak in small.items():
        found[f"{name}_events_per_s"] = round(median(speeds[name]))
        found[f"{name}_ratio"] = round(median(speeds[name]) / limit, 3)
        found[f"{name}_peak_mb"] = round(median(peaks[name]))
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
        result = measure(servers.postgres_url, args.evaluations, args.rounds)
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
