"""Bubblewrap's status report of a run, on a descriptor that no program of the sandbox inherits."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class BubblewrapStatus:
    """Bubblewrap's status report, one JSON object a line."""

    descriptor: int
    _text: str = field(default="")

    @property
    def first(self) -> int | None:
        """The sandbox's first process, as the host numbers it."""
        return self._facts().get("child-pid")

    @property
    def exit_code(self) -> int | None:
        """The program's exit code; nothing where it was never started, or killed from outside."""
        return self._facts().get("exit-code")

    def _facts(self) -> dict[str, int]:
        with suppress(BlockingIOError):  # nothing new
            self._text += os.read(self.descriptor, 4096).decode()
        complete = self._text.split("\n")[:-1]
        return {name: fact for line in complete for name, fact in json.loads(line).items()}
