"""Remove each mechanism in a copy of the tree, run the tests that guard it, and list what went red.

python -m tests.mutants                    all of them
python -m tests.mutants --only fence       those with this word in their name or target
python -m tests.mutants --promises         mutants of docs/explanation/proofs.md, by their acceptance tests
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.promises import promises

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", "__pycache__", ".*_cache", ".import_linter_cache"
)
RED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", re.MULTILINE)
"""A test that failed; a file that can't even be imported proves nothing."""
TIME_LIMIT = 600
"""Seconds for the tests of a mutant: one may hang so that not even its own time-out ends it."""


def main() -> int:
    """Try the mutants; returns 1 if one survives."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="a word in the mechanism's name, or in its target")
    parser.add_argument("--from", dest="first", type=int, default=1, help="begin with this number")
    parser.add_argument("--promises", action="store_true", help="run acceptance tests instead")
    args = parser.parse_args()
    known = promised_mutants() if args.promises else list(MUTANTS)
    matching = [mutant for mutant in known if args.only in f"{mutant.mechanism} {mutant.target}"]
    chosen = matching[args.first - 1 :]
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "scoreline"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        python = interpreter(Path(folder) / "venv", copy)
        for number, mutant in enumerate(chosen, start=args.first):
            started = time.monotonic()
            red = kill(copy, mutant, python)
            survivors += red is None
            outcome = f"red: {red}" if red else "SURVIVED: nothing went red"
            took = time.monotonic() - started
            print(f"{number:3}  without {mutant.mechanism:52} {outcome}  ({took:.0f} s)", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mechanisms removed were noticed")
    return int(survivors > 0)


def promised_mutants() -> list[Mutant]:
    """List the mutants of every promise, guarded by the promise's acceptance tests alone."""
    known = {mutant.mechanism: mutant for mutant in MUTANTS}
    return [known[name]._replace(tests=promise.tests) for promise in promises() for name in promise.mutants]


def interpreter(folder: Path, copy: Path) -> Path:
    """Make a virtual environment whose `scoreline` is that of the copy, in every process that starts."""
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib"))
    own = next((folder / "lib").glob("python3.*")) / "site-packages"
    (own / "copy.pth").write_text(f"{copy}\n{packages}\n", encoding="utf-8")
    python, command = folder / "bin" / "python", folder / "bin" / "scoreline"
    command.write_text(f"#!{python}\nfrom scoreline.cli.main import main\nmain()\n", encoding="utf-8")
    command.chmod(0o755)
    return python


def kill(copy: Path, mutant: Mutant, python: Path) -> str | None:
    """Remove a mechanism, run its tests, put it back; returns the first test that went red."""
    mutated = mutant.apply(copy)
    whole = mutated.path.read_text(encoding="utf-8")
    mutated.path.write_text(mutated.text, encoding="utf-8")
    try:
        return first_red(copy, mutant.tests, python)
    finally:
        mutated.path.write_text(whole, encoding="utf-8")


def first_red(copy: Path, tests: tuple[str, ...], python: Path) -> str | None:
    """Run tests in a copy of the tree until one fails; a test that hangs has failed."""
    command = [str(python), "-m", "pytest", "-x", "-p", "no:cacheprovider", "--timeout", "60", *tests]
    # CI=true: acceptance tests that take half a minute are run, too.
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
    try:
        ran = subprocess.run(
            command, cwd=copy, env=environ, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(tests)} (not over within {TIME_LIMIT} s)"
    if ran.returncode == 0:
        return None
    found = RED.search(ran.stdout)
    if found is None:
        raise SystemExit(f"the tests could not be run:\n{ran.stdout}{ran.stderr}")
    return found[1]


if __name__ == "__main__":
    sys.exit(main())
