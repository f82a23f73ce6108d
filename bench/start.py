"""Measures what a person waits for: short runs from the first keystroke, and commands that only read.

    python -m bench.start --json
    python -m bench.start --json --against ../other-checkout --promptfoo PATH --inspect PATH

Limit: promptfoo and Inspect AI, where they are installed, on the same cases with the same Python function.
All take turns in one run, so that the ratios hold on a busy machine; CPU time is that of the command and of
the processes it has waited for. `first` starts with an empty data directory, `cold` without servers, `warm`
with the servers of an earlier command (`EVAL_SERVERS_LINGER`).
"""

import argparse
import itertools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.start_peers import FUNCTION, inspect_ai, promptfoo, version_of

ROOT = Path(__file__).parents[1]
JOBS = {"four": 4, "thousand": 1_000}
READING = {
    "list": ("batch", "list"),
    "status": ("batch", "status", "{batch}"),
    "export": ("batch", "export", "{batch}", "-o", "out.jsonl", "--force"),
}
LINGER = "900"


@dataclass(frozen=True, slots=True)
class Cost:
    """One run of a command, in seconds."""

    wall: float
    cpu: float


@dataclass(slots=True)
class Contestant:
    """A way to do a job."""

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    costs: list[Cost] = field(default_factory=list)

    def run(self, folder: Path) -> None:
        """Do the job once, and add what it took."""
        before, began = _cpu(), time.perf_counter()
        subprocess.run(
            self.argv, cwd=folder, env={**os.environ, **self.environ}, capture_output=True, check=True
        )
        self.costs.append(Cost(time.perf_counter() - began, _cpu() - before))

    def row(self) -> dict[str, object]:
        """Return the medians."""
        return {
            "name": self.name,
            "wall_s": round(statistics.median(each.wall for each in self.costs), 3),
            "cpu_s": round(statistics.median(each.cpu for each in self.costs), 3),
            "runs": len(self.costs),
        }


class Scoreline:
    """One checkout of Scoreline, with a data directory of its own."""

    def __init__(self, name: str, checkout: Path, root: Path) -> None:
        self.name = name
        self._program = str(checkout / ".venv" / "bin" / "scoreline")
        self.data = root / f"data-{name}"

    def contestant(self, state: str, *words: str) -> Contestant:
        """Return a command in one state of the servers."""
        linger = LINGER if state == "warm" else "0"
        environ = {"EVAL_DATA_DIR": str(self.data), "EVAL_SERVERS_LINGER": linger}
        return Contestant(f"{self.name} {state}", [self._program, *words], environ)

    def bring_to(self, state: str, folder: Path) -> None:
        """Have no data directory, no servers, or warm servers."""
        self.contestant("warm" if state == "warm" else "cold", "batch", "list").run(folder)
        if state == "warm":
            return
        while any(self.data.rglob("postmaster.pid")) or any(self.data.rglob("valkey.pid")):
            time.sleep(0.02)
        time.sleep(0.2)  # the guardian ends after its servers
        if state == "first":
            shutil.rmtree(self.data)

    def newest_batch(self, folder: Path) -> str:
        """Return the id of the newest batch."""
        argv = self.contestant("warm", "batch", "list", "--limit", "1", "--json")
        environ = {**os.environ, **argv.environ}
        found = subprocess.run(argv.argv, cwd=folder, env=environ, capture_output=True, check=True)
        return str(json.loads(found.stdout)["batch_id"])


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_cases(folder: Path) -> None:
    """Write the cases of each job, and the function that answers them."""
    (folder / "target.py").write_text(FUNCTION, encoding="utf-8")
    for job, many in JOBS.items():
        rows = ({"id": f"c{n}", "input": f"question {n}", "expected": f"question {n}"} for n in range(many))
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{job}.jsonl").write_text(text, encoding="utf-8")


def run_words(job: str) -> tuple[str, ...]:
    """Return the command that runs a job."""
    flags = ("--target", "python:target:answer", "--evaluator", "exact")
    return ("batch", "run", "--dataset", f"{job}.jsonl", *flags, "--json")


def measure(
    options: argparse.Namespace, checkouts: Sequence[Scoreline], folder: Path
) -> Iterator[dict[str, object]]:
    """Run every job by every contestant, in turns."""
    peers = [peer for peer in (promptfoo(options.promptfoo), inspect_ai(options.inspect)) if peer]
    for job in JOBS:
        others = [Contestant(peer.name, peer.argv(job, folder), peer.environ(folder)) for peer in peers]
        ours = {
            (each, state): each.contestant(state, *run_words(job))
            for each in checkouts
            for state in ("warm", "cold", "first")
        }
        for _ in range(options.rounds):
            for (checkout, state), contestant in ours.items():
                checkout.bring_to(state, folder)
                contestant.run(folder)
            for other in others:
                other.run(folder)
        yield from rows(job, [*ours.values(), *others])
    yield from measure_reading(options, checkouts, folder)


def measure_reading(
    options: argparse.Namespace, checkouts: Sequence[Scoreline], folder: Path
) -> Iterator[dict[str, object]]:
    """Measure the commands that only read, with warm servers."""
    for checkout in checkouts:
        checkout.bring_to("warm", folder)
        checkout.contestant("warm", *run_words("four")).run(folder)
    batches = {each: each.newest_batch(folder) for each in checkouts}
    for job, words in READING.items():
        ours = [
            each.contestant("warm", *(word.format(batch=batches[each]) for word in words))
            for each in checkouts
        ]
        for _ in range(options.rounds):
            for contestant in ours:
                contestant.run(folder)
        yield from rows(job, ours)


def rows(job: str, contestants: Sequence[Contestant]) -> Iterator[dict[str, object]]:
    """Return the medians of a job, with the ratio of the first contestant to each other one."""
    first = contestants[0]
    for each in contestants:
        ratios = {
            f"{kind}_ratio": round(_median(first, kind) / _median(each, kind), 2)
            for kind in ("wall", "cpu")
        }
        yield {"job": job, **each.row(), **({} if each is first else ratios)}


def _median(contestant: Contestant, kind: str) -> float:
    return statistics.median(float(getattr(each, kind)) for each in contestant.costs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout, with a .venv of its own")
    parser.add_argument("--promptfoo", default=shutil.which("promptfoo"))
    parser.add_argument("--inspect", default=shutil.which("inspect"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="start-") as place:
        folder = Path(place) / "job"
        folder.mkdir()
        write_cases(folder)
        checkouts = [Scoreline("scoreline", ROOT, Path(place))]
        if options.against:
            checkouts.append(Scoreline("against", options.against.resolve(), Path(place)))
        try:
            print_rows(options, measure(options, checkouts, folder))
        finally:
            for each in checkouts:
                each.bring_to("cold", folder)


def print_rows(options: argparse.Namespace, measured: Iterator[dict[str, object]]) -> None:
    """Print each row as it is measured, after the versions."""
    versions = {"python": sys.version.split()[0], "load": os.getloadavg()[0]}
    versions |= {name: version_of(program) for name, program in _programs(options) if program}
    head: dict[str, object] = {"versions": versions}
    for row in itertools.chain([head], measured):
        print(
            json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items())
        )


def _programs(options: argparse.Namespace) -> Iterator[tuple[str, str | None]]:
    yield "promptfoo", options.promptfoo
    yield "inspect_ai", options.inspect


if __name__ == "__main__":
    main()
