"""The text of a screen without what differs from run to run, and whether two screens match. Pure."""

import re

ELLIPSIS = "…"
BATCH_ID = re.compile(r"\b([a-z0-9][\w-]*?)-([2-9a-z]{6})\b")
CHANGING = {
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00| UTC)?": "TIME",
    r"\[?\b\d\d:\d\d:\d\d(\.\d+)?\]?": "CLOCK",
    r"\b[\d.,]+ (ms|s|min|h|days?)\b( \d+ (s|min|h)\b)?": "SPAN",
    r'"(duration_s|age_s|age_seconds|seconds)": [\d.]+': r'"\1": SPAN',
    r"\b[\d,]+\.\d/s": "RATE",
    r"\.\d{8}(?= +\d+ )( +\d+)": ".NUMBER CASE",
    r"\.\d{8}\b": ".NUMBER",
    r"\$[\d,]+(\.\d+)?": "MONEY",
    r"[━╸╺]+[ ]*|^ {20,}": "BAR ",
    r"[─━┏┳┓┡╇┩└┴┘├┼┤┃│]+": "|",
    r"[ \t]+": " ",
}
PROGRESS = re.compile(r"^(running|paused|completed) [\d,]+ of [\d,]+ ")
"""A line about progress where there is no terminal: how many there are depends on the machine."""


def words(shown: str) -> list[str]:
    """Return the lines of a screen without times, ids, rates, money and the width of its columns."""
    shown = BATCH_ID.sub(r"\1-ID", shown)
    for changing, name in CHANGING.items():
        shown = re.sub(changing, name, shown, flags=re.MULTILINE)
    lines = [line.strip() for line in shown.splitlines()]
    return [line for line in lines if line and not PROGRESS.match(line)]


def same(expected: str, printed: str) -> bool:
    """Compare two screens; `…` of the expected one stands for any lines, or within a line for any words."""
    return _same(words(expected), words(printed))


def _same(expected: list[str], printed: list[str]) -> bool:
    if not expected:
        return not printed
    head, *rest = expected
    if head == ELLIPSIS:
        return any(_same(rest, printed[start:]) for start in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(re.escape(part) for part in head.split(ELLIPSIS))
    return re.fullmatch(pattern, printed[0]) is not None and _same(rest, printed[1:])


def ids(shown: str) -> dict[str, str]:
    """Find the batch ids on a screen: the last of each name."""
    return {found[1]: found[0] for found in BATCH_ID.finditer(shown)}
