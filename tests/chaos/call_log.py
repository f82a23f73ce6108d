"""What the processes of a run have done, a word a line in one file: a killed one's words remain."""

import os
from collections import Counter
from pathlib import Path


class CallLog:
    """Counts by word, kept in a file that many processes append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, word: str, times: int = 1) -> None:
        """Write a word down; one write a line, so that lines of several processes never mix."""
        if times:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(descriptor, f"{times} {word}\n".encode())
            os.close(descriptor)

    def counts(self) -> Counter[str]:
        """Add up what was written so far."""
        found: Counter[str] = Counter()
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for line in lines:
            times, _, word = line.partition(" ")
            found[word] += int(times)
        return found
