"""Measures the overhead of telemetry: the whole system with it and without it, in turn.

    python -m bench.telemetry --json

Limit: the same run without telemetry. Each run is the first of `bench.runner` on new servers, in its own
process. With telemetry, all processes serve `/metrics`, which are scraped every five seconds; one
evaluation in a hundred is traced into files. `ratio` is throughput with ÷ without, of the medians;
`cpu_ratio` that of the CPU time per evaluation, servers and scraper included. `off_ns_per_call` is the cost
of one call of an instrument in a process without telemetry.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import timeit
import urllib.request
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from bench.runner import throughput
from eventlog.tasks import end
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.observability.wiring import Service, telemetry_for
from scoreline.settings import Settings
from taskqueue import telemetry

FETCH_EVERY = 5.0
CALLS = 200_000


def asked_for(root: Path) -> Settings:
    """Enable metrics and traces, as a deployment would."""
    return Settings(metrics_port=0, metrics_dir=root / "addresses", trace_dir=root / "spans")


def fetch_all(folder: Path) -> int:
    """Scrape the metrics of every registered process; returns their bytes."""
    fetched = 0
    for path in folder.glob("*.json"):
        [word] = json.loads(path.read_text(encoding="utf-8"))
        with urllib.request.urlopen(f"http://{word['targets'][0]}/metrics", timeout=5) as answer:
            fetched += len(answer.read())
    return fetched


def count_spans(folder: Path) -> int:
    """Count the spans that all processes have written."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl"))


async def keep_fetching(folder: Path, sizes: list[int]) -> None:
    """Be Prometheus."""
    while True:
        await asyncio.sleep(FETCH_EVERY)
        with suppress(OSError):  # a process that is just starting or ending
            sizes.append(await asyncio.to_thread(fetch_all, folder))


async def measure(root: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Run once, with telemetry or without."""
    settings = asked_for(root) if args.one == "on" else Settings()
    sizes: list[int] = []
    with embedded_servers(root) as servers, telemetry_for(Service.SUBMITTER, settings):
        await prepare(servers.postgres_url, shards=settings.shards)
        fetching = asyncio.create_task(keep_fetching(root / "addresses", sizes))
        try:
            result = await throughput(
                servers, root, evaluations=args.evaluations, executors=args.executors, settings=settings
            )
        finally:
            await end([fetching])
    spans = count_spans(root / "spans")
    return {"telemetry": args.one, **result, "fetched_bytes": max(sizes, default=0), "spans": spans}


def one_run(telemetry_is: str, args: argparse.Namespace) -> dict[str, Any]:
    """Run once, in a process of its own."""
    argv = [sys.executable, "-m", "bench.telemetry", "--one", telemetry_is]
    argv += ["--evaluations", str(args.evaluations), "--executors", str(args.executors)]
    ran = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(ran.stdout)
    print(result, file=sys.stderr)
    return result


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Run with and without telemetry in turn, and compare."""
    runs = [one_run(each, args) for _ in range(args.pairs) for each in ("off", "on")]
    speed, cpu = _medians(runs, "evaluations_per_s"), _medians(runs, "cpu_ms_per_evaluation")
    seconds = timeit.timeit(lambda: telemetry.nacked.add(1, telemetry.RETRY), number=CALLS)
    return {
        "ratio": round(speed["on"] / speed["off"], 3),
        "cpu_ratio": round(cpu["on"] / cpu["off"], 3),
        "off_ns_per_call": round(seconds / CALLS * 1e9, 1),
        "runs": runs,
    }


def _medians(runs: list[dict[str, Any]], key: str) -> dict[str, float]:
    return {each: median(run[key] for run in runs if run["telemetry"] == each) for each in ("on", "off")}


def main() -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--executors", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=3, help="runs without and with")
    parser.add_argument("--one", choices=["on", "off"], help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args()
    if args.one:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
            print(json.dumps(asyncio.run(measure(Path(root), args))))
        return
    result = compare(args)
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
