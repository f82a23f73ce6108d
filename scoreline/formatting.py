"""Formatting for terminals: escaped foreign text, durations, times, counts and amounts. Pure."""

from datetime import UTC, datetime, timedelta

from eventlog.time_range import clamped

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def printable(text: str) -> str:
    """Escape every character that a terminal could interpret as a control sequence."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def clipped(line: str, length: int) -> str:
    """Return the beginning of a line, with its spaces: they may be the difference."""
    shown = printable(line[: length + 1])
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def excerpt(text: str, length: int) -> str:
    """Return the beginning of a text on one line."""
    # Cut before looking at each character: an output may be half a megabyte long.
    beginning = text[: length * 4]
    line = printable(" ".join(beginning.split()))
    return line if len(line) <= length and len(beginning) == len(text) else f"{line[: length - 1]}…"


def span(time: timedelta) -> str:
    """Format a duration in its two largest units."""
    seconds = abs(time.total_seconds())
    sign = "-" if time < timedelta() else ""
    for at, (unit, size) in enumerate(_UNITS):
        if seconds >= size:
            below, below_size = _UNITS[at + 1] if at + 1 < len(_UNITS) else ("s", 1)
            return f"{sign}{int(seconds // size)} {unit} {int(seconds % size // below_size)} {below}"
    if seconds >= 1:
        return f"{sign}{seconds:.1f} s"
    return f"{sign}{round(seconds * 1000)} ms"


def stamp(at: datetime) -> str:
    """Format a date and time, in UTC."""
    return f"{clamped(at).astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"


def clock(at: datetime) -> str:
    """Format a time of day, in UTC."""
    return f"{clamped(at).astimezone(UTC):%H:%M:%S.%f}"[:-3]


def counted(number: int, what: str, plural: str = "") -> str:
    """Format a count with its noun."""
    return f"{number} {what}" if number == 1 else f"{number:,} {plural or what + 's'}"


def money(amount: float) -> str:
    """Format a cost without trailing zeros."""
    return f"${amount:.6f}".rstrip("0").rstrip(".")
