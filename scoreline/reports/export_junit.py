"""Exports as JUnit XML, streamed: one test case per evaluation."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from scoreline.reports.export_record import Record
from scoreline.reports.export_writers import Write

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, escaped or not."""


@contextmanager
def junit(
    file: IO[bytes], *, name: str, endings: Mapping[tuple[str, str], int], is_scored: bool = True
) -> Iterator[Write]:
    """Yield the writer of one suite; its counts precede the cases, so `endings` is passed in."""

    def write(record: Record) -> None:
        file.write(_case(record, suite=name).encode())

    opening = f"<testsuites>\n<testsuite{_attributes(_counts(name, endings, is_scored=is_scored))}>\n"
    file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{opening}'.encode())
    yield write
    # Not after an error: a truncated document must not parse.
    file.write(b"</testsuite>\n</testsuites>\n")


def _counts(name: str, endings: Mapping[tuple[str, str], int], *, is_scored: bool) -> dict[str, object]:
    def of(*statuses: str) -> int:
        return sum(count for (status, _), count in endings.items() if status in statuses)

    return {
        "name": name,
        "tests": sum(endings.values()),
        "failures": endings.get(("completed", "failed"), 0) if is_scored else 0,
        "errors": of("failed", "timed_out"),
        "skipped": of("cancelled", "open") if is_scored else of("cancelled", "open", "completed"),
    }


def _case(record: Record, *, suite: str) -> str:
    attributes = {
        "classname": f"{suite}.{record.target or 'evaluation'}",
        "name": _name(record),
        "time": f"{(record.latency_ms or 0) / 1000:.3f}",
    }
    output = "" if record.output is None else f"<system-out>{_text(record.output)}</system-out>"
    return f"<testcase{_attributes(attributes)}>{_outcome(record)}{output}</testcase>\n"


def _name(record: Record) -> str:
    variant = f" [{record.prompt}]" if record.prompt else f" [variant {record.variant}]"
    again = f" #{record.repetition}" if record.repetition > 1 else ""
    return f"{record.case_id}{variant}{again}"


def _outcome(record: Record) -> str:
    match record.status, record.verdict:
        case "completed", "failed":
            return _element("failure", record.reason or "the verdict is: failed", "failed")
        case "completed", "passed":
            return ""
        case "completed", _:
            return _element("skipped", "not scored: the batch has no evaluator")
        case (("failed" | "timed_out"), _):
            fault = record.error
            return _element("error", fault.message if fault else "", fault.kind if fault else record.status)
        case "cancelled", _:
            return _element("skipped", record.error.message if record.error else "cancelled")
        case state, _:
            return _element("skipped", f"has not ended: {state}")


def _element(tag: str, message: str, kind: str | None = None) -> str:
    attributes = {"message": message[:1_000], **({"type": kind} if kind is not None else {})}
    return f"<{tag}{_attributes(attributes)}>{_text(message)}</{tag}>"


def _attributes(values: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(_NO_XML.sub('', str(value)))}" for name, value in values.items())


def _text(text: str) -> str:
    # An XML parser reads a literal carriage return as a line feed.
    return escape(_NO_XML.sub("", text), {"\r": "&#13;"})
