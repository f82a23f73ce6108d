"""A reader at a shell: runs the commands of a page one after the other, in a folder of its own."""

import asyncio
import os
import re
import shlex
import sys
from asyncio.subprocess import PIPE, STDOUT
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.guide_blocks import Step
from tests.acceptance.guide_words import ids, same
from tests.integration.worker import environment

TIMEOUT = 240
HOME = "/home/ada"
"""What the pages call the reader's folder."""


class Differs(AssertionError):  # noqa: N818 - what is found, not what went wrong here
    """A command printed something else than its page shows."""

    def __init__(self, command: str, shown: str, printed: str) -> None:
        super().__init__(f"$ {command}\n--- the page shows\n{shown}\n--- it printed\n{printed}")
        self.printed = printed


@dataclass(slots=True)
class Session:
    """One reader."""

    root: Path
    environ: dict[str, str]
    known: dict[str, str] = field(default_factory=dict)
    """Ids of batches, and addresses: as the page has them, and as they are here."""
    code: int = 0
    last: str = ""
    """The batch that was started last, for pages that write ID."""

    async def follow(self, step: Step) -> str:
        """Run a command as the page has it, and return what it printed; raises if that differs."""
        words = shlex.split(step.command, comments=True)
        if words[0] == "cat" and len(words) == 2 and not (self.root / words[1]).exists():
            (self.root / words[1]).write_text(step.shown, encoding="utf-8")  # a file that the page gives
            return step.shown
        printed = (await self.run(step.command)).replace(str(self.root), HOME)
        self._learn(step.shown, printed)
        if not step.shown and self.code:
            raise Differs(
                step.command, "nothing, and ends with 0", f"{printed}\nand ended with {self.code}"
            )
        if step.shown and not same(step.shown, printed):
            raise Differs(step.command, step.shown, printed)
        return printed

    async def run(self, command: str) -> str:
        """Run a command with the ids that batches have here."""
        command = self.here(command)
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            f"(exit {self.code}); {command}",
            cwd=self.root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            env=self._environment(),
        )
        printed, _ = await asyncio.wait_for(process.communicate(), TIMEOUT)
        self.code = process.returncode or 0
        text = printed.decode()
        accepted = re.search(r"^(\S+): [\d,]+ evaluations? accepted$", text, re.MULTILINE)
        self.last = accepted[1] if accepted else self.last
        return text

    def _environment(self) -> dict[str, str]:
        """Return the environment of a user without a terminal: no width is set."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        ours = environment(**self.environ, PATH=path)
        return {name: value for name, value in ours.items() if name not in {"COLUMNS", "LINES"}}

    def here(self, text: str) -> str:
        """Put in the ids and addresses that are those of the page here."""
        for shown, here in [*self.known.items(), (" ID ", f" {self.last} ")]:
            text = text.replace(shown, here)
        return text

    async def prepare(self, command: str, block: str) -> None:
        """Run what a page leaves out before a block, and take the batches it starts for the block's."""
        self._learn(block, await self.run(command))

    def _learn(self, shown: str, printed: str) -> None:
        here = ids(printed)
        self.known |= {there: here[name] for name, there in ids(shown).items() if name in here}
