"""Run the corpus on every footing that this machine has, each in a process of its own, all at once."""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.escapes.corpus import CORPUS
from tests.escapes.program import EscapeProgram, ExecutorRights, Wall

ROOT = Path(__file__).parents[2]
PATIENCE = 280
WITHOUT_SYS_ADMIN = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")


@dataclass(frozen=True)
class CorpusRow:
    """One program on one footing: contained or not, and by what."""

    program: EscapeProgram
    rights: ExecutorRights
    problems: list[str]
    ended_by: str
    seconds: float

    @property
    def wall(self) -> Wall:
        """What contains the program here."""
        return self.program.contained_by(self.rights.footing)


@dataclass(frozen=True)
class FootingReport:
    """What came of the corpus on one footing."""

    rights: ExecutorRights
    rows: list[CorpusRow]
    left_behind: list[str]
    """Resources that were not returned, and damage to the host."""
    seconds: float
    peak_mb: int
    """The most resident memory that the executor's process had."""
    unavailable: str = ""
    """Why this footing is not available here."""


def available_rights() -> list[ExecutorRights]:
    """List the rights that a process of this user can start an executor with."""
    return list(ExecutorRights) if os.geteuid() == 0 else [ExecutorRights.UNPRIVILEGED]


def run(word: str = "") -> list[FootingReport]:
    """Run the programs whose name or family has a word in it."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda rights: _run(rights, word), available_rights()))


def _run(rights: ExecutorRights, word: str) -> FootingReport:
    with tempfile.TemporaryDirectory(prefix="escapes-") as folder:
        Path(folder).chmod(0o755)
        for name in ("host", "temporary"):
            (Path(folder) / name).mkdir()
        prefix = WITHOUT_SYS_ADMIN if rights is ExecutorRights.CONTAINED_ROOT else ()
        command = [*prefix, sys.executable, "-m", "tests.escapes.footing", rights.name, folder, word]
        environ = {**os.environ, "TMPDIR": f"{folder}/temporary"}
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        left = [f"left by the executor: {path.name}" for path in (Path(folder) / "temporary").iterdir()]
    return _report(rights, done.stdout, done.stderr, left)


def _report(rights: ExecutorRights, said: str, errors: str, left: list[str]) -> FootingReport:
    if not said:
        return FootingReport(rights, [], [], 0, 0, unavailable=errors.strip()[-2_000:])
    found = json.loads(said)
    known = {program.name: program for program in CORPUS}
    rows = [
        CorpusRow(known[each["name"]], rights, each["problems"], each["ended_by"], each["seconds"])
        for each in found["outcomes"]
    ]
    return FootingReport(rights, rows, [*found["problems"], *left], found["seconds"], found["peak_mb"])
