"""Run the corpus on every footing that this machine has, each in a process of its own, all at once."""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from executor.sandbox.walls import Footing
from tests.escapes.corpus import CORPUS
from tests.escapes.program import EscapeProgram

ROOT = Path(__file__).parents[2]
PATIENCE = 280


@dataclass(frozen=True)
class CorpusRow:
    """One program on one footing: contained or not, and by what."""

    program: EscapeProgram
    footing: Footing
    problems: list[str]
    ended_by: str
    seconds: float


@dataclass(frozen=True)
class FootingReport:
    """What came of the corpus on one footing."""

    footing: Footing
    rows: list[CorpusRow]
    left_behind: list[str]
    """Resources that were not returned, and damage to the host."""
    seconds: float
    peak_mb: int
    """The most resident memory that the executor's process had."""
    unavailable: str = ""
    """Why this footing can't be had here."""


def footings() -> list[Footing]:
    """List the footings to try: an executor without root has only one."""
    return list(Footing) if os.geteuid() == 0 else [Footing.USER_NAMESPACE]


def run(word: str = "") -> list[FootingReport]:
    """Run the programs whose name or family has a word in it."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda footing: _run(footing, word), footings()))


def _run(footing: Footing, word: str) -> FootingReport:
    with tempfile.TemporaryDirectory(prefix="escapes-") as folder:
        Path(folder).chmod(0o755)
        for name in ("host", "temporary"):
            (Path(folder) / name).mkdir()
        command = [sys.executable, "-m", "tests.escapes.footing", footing.name, folder, word]
        environ = {**os.environ, "TMPDIR": f"{folder}/temporary"}
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        left = [f"left by the executor: {path.name}" for path in (Path(folder) / "temporary").iterdir()]
    return _report(footing, done.stdout, done.stderr, left)


def _report(footing: Footing, said: str, errors: str, left: list[str]) -> FootingReport:
    if not said:
        return FootingReport(footing, [], [], 0, 0, unavailable=errors.strip()[-2_000:])
    found = json.loads(said)
    known = {program.name: program for program in CORPUS}
    rows = [
        CorpusRow(known[each["name"]], footing, each["problems"], each["ended_by"], each["seconds"])
        for each in found["outcomes"]
    ]
    return FootingReport(footing, rows, [*found["problems"], *left], found["seconds"], found["peak_mb"])
