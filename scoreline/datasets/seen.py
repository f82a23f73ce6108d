"""Which ids were there before, and where: eight bytes an id, however long the ids are."""

from hashlib import blake2b


class SeenIds:
    """Remembers ids by a digest; two of a million differ in theirs but for a chance of 1 in 30 million."""

    def __init__(self) -> None:
        self._lines: dict[int, int] = {}

    def add(self, identifier: str, line: int) -> int | None:
        """Remember an id; returns the line where it was before, if it was."""
        digest = blake2b(identifier.encode(errors="surrogatepass"), digest_size=8).digest()
        first = self._lines.setdefault(int.from_bytes(digest), line)
        return None if first == line else first
