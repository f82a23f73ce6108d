"""Spans for tests of what reads them."""

from scoreline.observability.span_reader import RecordedSpan


def span(name: str, number: int, above: int | None = None, **attributes: object) -> RecordedSpan:
    at = 1_000_000_000 + number * 1_000_000
    parent = None if above is None else str(above)
    return RecordedSpan(
        "t1", str(number), parent, name, "executor", 7, at, at + 2_500_000, None, attributes
    )
