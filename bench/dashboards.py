"""Measures the duration of each dashboard query on a batch of a million evaluations.

    python -m bench.dashboards --json [EVALUATIONS]

Limit: none; the figures are absolute milliseconds. One batch with five events and a scorecard per
evaluation, created in Postgres itself, beside ten batches of a thousand; one in fifty evaluations has
failed. Each query runs as in Grafana, with the read-only role, and is timed by the client, rows fetched:
the median of five, after a warm-up.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median

import psycopg

from eventlog.clock import utc_now
from grafana.catalogue import DASHBOARDS
from grafana.expansion import Window, expand
from grafana.model import Sql
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers

FILL = Path(__file__).with_name("dashboards_fill.sql")
ROUNDS = 5
LIMIT_MS = 100.0
READER = "SET ROLE scoreline_reader"


def fill(conn: psycopg.Connection, batch: str, evaluations: int) -> None:
    """Make a batch whole, without the way through Redis."""
    wanted = {"batch": batch, "total": evaluations}
    for statement in FILL.read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            conn.execute(statement.encode(), wanted)


def questions() -> list[Sql]:
    """List every query of every panel and variable, once."""
    asked = [query for page in DASHBOARDS for panel in page.panels for query in panel.queries]
    asked += [variable.query for page in DASHBOARDS for variable in page.variables]
    return sorted({each for each in asked if isinstance(each, Sql)}, key=lambda each: each.file)


def timed(conn: psycopg.Connection, statement: str) -> float:
    """Run the query once; returns milliseconds."""
    started = time.perf_counter()
    conn.execute(statement.encode()).fetchall()
    return (time.perf_counter() - started) * 1000


def measure(url: str, evaluations: int) -> dict[str, object]:
    """Fill a database and time every query."""
    asyncio.run(prepare(url, shards=4))
    with psycopg.connect(url, autocommit=True) as conn:
        started = time.perf_counter()
        for number in range(10):
            fill(conn, f"small{number}", 1_000)
        fill(conn, "large", evaluations)
        conn.execute("VACUUM ANALYZE")
        conn.execute("CHECKPOINT")  # neither the queries nor the end are to wait for it
        print(f"filled in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        conn.execute(READER)
        now = utc_now()
        window = Window(now - timedelta(hours=6), now, timedelta(seconds=30), timedelta(minutes=1))
        values = {"batch": "large", "evaluation": f"large.{evaluations // 2:08}"}
        figures = {}
        for each in questions():
            statement = expand(each.text, window, values)
            timed(conn, statement)
            figures[each.file] = round(median(timed(conn, statement) for _ in range(ROUNDS)), 1)
    return {
        "evaluations": evaluations,
        "slowest_ms": max(figures.values()),
        "above_100_ms": [name for name, took in figures.items() if took > LIMIT_MS],
        "ms": dict(sorted(figures.items(), key=lambda pair: -pair[1])),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on a database of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("evaluations", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        embedded_servers(Path(root)) as servers,
    ):
        result = measure(servers.postgres_url, args.evaluations)
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
