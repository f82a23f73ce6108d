"""The fenced blocks of README and docs, and the commands that a block shows with what they print."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMPT = "$ "


class Block(NamedTuple):
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """Name it by its page and its first line, which stay when lines above it change."""
        return f"{self.page}: {self.text.partition(chr(10))[0].strip()}"


class Step(NamedTuple):
    """A command of a console block, and what the page shows of its output."""

    command: str
    shown: str


def pages() -> list[str]:
    """List the pages that are held to what they print, by their paths."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("**/*.md"))]


def blocks(page: str) -> Iterator[Block]:
    """List a page's fenced blocks, but for those marked as fragments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if "fragment" not in found[2]:
            line = text[: found.start()].count("\n") + 1
            yield Block(page, line, found[1], found[3])


def steps(text: str) -> Iterator[Step]:
    """Take a console block apart: a command begins with `$ `, and goes on where a here-document does."""
    command, shown, until = "", "", ""
    for line in text.splitlines(keepends=True):
        if until:
            command += line
            until = "" if line.strip() == until else until
        elif line.startswith(PROMPT):
            if command:
                yield Step(command, shown)
            command, shown = line.removeprefix(PROMPT), ""
            found = re.search(r"<<'?(\w+)'?", command)
            until = found[1] if found else ""
        else:
            shown += line
    if command:
        yield Step(command, shown)


LEFT_OUT = {" …": " --dataset capitals.jsonl --evaluator exact"}
"""What the reader fills in."""
SERVES = "scoreline provider-sim"


def typed(text: str) -> Iterator[Step]:
    """List the commands of a block that shows no output; a server is let run for a moment."""
    for line in text.splitlines():
        command = line.partition("  #")[0].strip()
        if command.startswith("scoreline "):
            for left_out, filled_in in LEFT_OUT.items():
                command = command.replace(left_out, filled_in)
            yield Step(f"timeout -s INT 4 {command} || test $? -gt 123" if SERVES in line else command, "")
