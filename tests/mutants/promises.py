"""The promises of docs/explanation/promises.md, with their acceptance tests and the mutants they kill."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HEADING = "## Promises at the command line\n"


class Promise(NamedTuple):
    """One row of the table in docs/explanation/proofs.md."""

    words: str
    """As docs/explanation/promises.md has them."""
    tests: tuple[str, ...]
    """Acceptance tests, as pytest names them."""
    mutants: tuple[str, ...]
    """Mechanisms of the catalogue; without any of them a test of this row fails."""


def promised() -> list[str]:
    """List the promises of docs/explanation/promises.md, one line each."""
    text = (ROOT / "docs" / "explanation" / "promises.md").read_text(encoding="utf-8")
    section = text.partition("## Promised\n")[2].partition("\n## ")[0]
    return re.findall(r"^- (.+)$", section, re.MULTILINE)


def promises() -> list[Promise]:
    """Read the table of docs/explanation/proofs.md."""
    text = (ROOT / "docs" / "explanation" / "proofs.md").read_text(encoding="utf-8")
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| (`tests/.+`) \| (.+) \|$", section, re.MULTILINE)
    return [
        Promise(words, tuple(re.findall(r"`([^`]+)`", tests)), tuple(mutants.split("; ")))
        for words, tests, mutants in rows
    ]
