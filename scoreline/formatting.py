"""Foreign text for a terminal: shown, never obeyed."""


def printable(text: str) -> str:
    """Show text as text and everything else as escapes, so that no terminal obeys it."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def clipped(line: str, length: int) -> str:
    """Show the beginning of a line as it stands: what differs may be its spaces."""
    shown = printable(line[: length + 1])
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def excerpt(text: str, length: int) -> str:
    """Show the beginning of a text on one line."""
    # Cut before looking at each character: an output may be half a megabyte long.
    beginning = text[: length * 4]
    line = printable(" ".join(beginning.split()))
    return line if len(line) <= length and len(beginning) == len(text) else f"{line[: length - 1]}…"
