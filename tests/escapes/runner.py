"""Run the corpus in every privilege mode that this machine has, each in its own process, concurrently."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from executor.sandbox.memory_cgroup import V1
from tests.escapes.corpus import CORPUS
from tests.escapes.privilege_mode import UNAVAILABLE
from tests.escapes.program import EscapeProgram, ExecutorRights, Mechanism

ROOT = Path(__file__).parents[2]
CGROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
TIMEOUT = 280
WITHOUT_SYS_ADMIN = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")


@dataclass(frozen=True)
class CorpusRow:
    """One program in one privilege mode: contained or not, and by what."""

    program: EscapeProgram
    rights: ExecutorRights
    problems: list[str]
    ended_by: str
    seconds: float

    @property
    def mechanism(self) -> Mechanism:
        """What contains the program here."""
        return self.program.contained_by(self.rights)


@dataclass(frozen=True)
class ModeReport:
    """What came of the corpus in one privilege mode."""

    rights: ExecutorRights
    rows: list[CorpusRow]
    left_behind: list[str]
    """Resources that were not returned, and damage to the host."""
    seconds: float
    peak_mb: int
    """The most resident memory that the executor's process had."""
    unavailable: str = ""
    """Why this privilege mode is not available here."""


def available_rights() -> list[ExecutorRights]:
    """List the rights that a process of this user can start an executor with."""
    return list(ExecutorRights) if os.geteuid() == 0 else [ExecutorRights.UNPRIVILEGED]


def run(word: str = "") -> list[ModeReport]:
    """Run the programs whose name or family has a word in it."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda rights: _run(rights, word), available_rights()))


def _run(rights: ExecutorRights, word: str) -> ModeReport:
    with tempfile.TemporaryDirectory(prefix="escapes-") as folder:
        Path(folder).chmod(0o755)
        for name in ("host", "temporary"):
            (Path(folder) / name).mkdir()
        with memory_cgroup() if rights is ExecutorRights.CGROUP else nullcontext("") as cgroup:
            if cgroup is None:
                return ModeReport(rights, [], [], 0, 0, unavailable=f"{UNAVAILABLE}: no memory cgroup")
            done = _run_process(rights, [folder, word, cgroup], f"{folder}/temporary")
            left = [f"left by the executor: {path}" for path in _entries(f"{folder}/temporary", cgroup)]
    return _report(rights, done.stdout, done.stderr, left)


def _run_process(
    rights: ExecutorRights, arguments: list[str], temporary: str
) -> subprocess.CompletedProcess[str]:
    prefix = WITHOUT_SYS_ADMIN if rights is ExecutorRights.CONTAINED_ROOT else ()
    return subprocess.run(
        [*prefix, sys.executable, "-m", "tests.escapes.privilege_mode", rights.name, *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": temporary},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def _entries(*folders: str) -> list[Path]:
    """List the folders that are left in folders of which some have no name."""
    return [path for folder in folders if folder for path in Path(folder).iterdir() if path.is_dir()]


@contextmanager
def memory_cgroup() -> Iterator[str | None]:
    """Make a memory cgroup to delegate; None where this process can't."""
    roots = [root for root in CGROUPS if _counts_memory(root) and os.access(root, os.W_OK)]
    if not roots:
        yield None
        return
    path = roots[0] / f"scoreline-escapes-{uuid4().hex}"
    path.mkdir()
    try:
        yield str(path)
    finally:
        for group in (*_entries(str(path)), path):
            group.rmdir()


def _counts_memory(root: Path) -> bool:
    control = root / "cgroup.subtree_control"
    return (root / V1.limit).exists() or (control.exists() and "memory" in control.read_text())


def _report(rights: ExecutorRights, output: str, errors: str, left: list[str]) -> ModeReport:
    if not output:
        return ModeReport(rights, [], [], 0, 0, unavailable=errors.strip()[-2_000:])
    found = json.loads(output)
    known = {program.name: program for program in CORPUS}
    rows = [
        CorpusRow(known[each["name"]], rights, each["problems"], each["ended_by"], each["seconds"])
        for each in found["outcomes"]
    ]
    return ModeReport(rights, rows, [*found["problems"], *left], found["seconds"], found["peak_mb"])
