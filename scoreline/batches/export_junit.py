"""Exports as JUnit XML, written as they come: a test case an evaluation."""

import re
from collections.abc import Mapping
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from scoreline.batches.export_record import Record

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't have in any form."""


class JunitWriter:
    """One suite; its counts stand at its beginning, so they must be known before."""

    def __init__(self, file: IO[bytes], *, name: str, endings: Mapping[tuple[str, str], int]) -> None:
        self._file = file
        self._suite = name
        errors = sum(count for (status, _), count in endings.items() if status in {"failed", "timed_out"})
        skipped = sum(count for (status, _), count in endings.items() if status in {"cancelled", "open"})
        counts = {
            "name": name,
            "tests": sum(endings.values()),
            "failures": endings.get(("completed", "failed"), 0),
            "errors": errors,
            "skipped": skipped,
        }
        self._put('<?xml version="1.0" encoding="UTF-8"?>\n')
        self._put(f"<testsuites>\n<testsuite{_attributes(counts)}>\n")

    def write(self, record: Record) -> None:
        """Add a test case."""
        case = {
            "classname": f"{self._suite}.{record.target or 'evaluation'}",
            "name": _name(record),
            "time": f"{(record.latency_ms or 0) / 1000:.3f}",
        }
        self._put(f"<testcase{_attributes(case)}>{_outcome(record)}")
        if record.output is not None:
            self._put(f"<system-out>{_text(record.output)}</system-out>")
        self._put("</testcase>\n")

    def close(self) -> None:
        """End the document."""
        self._put("</testsuite>\n</testsuites>\n")

    def _put(self, text: str) -> None:
        self._file.write(text.encode())


def _name(record: Record) -> str:
    variant = f" [{record.prompt}]" if record.prompt else f" [variant {record.variant}]"
    again = f" #{record.repetition}" if record.repetition > 1 else ""
    return f"{record.case_id}{variant}{again}"


def _outcome(record: Record) -> str:
    match record.status, record.verdict:
        case "completed", "failed":
            return _element("failure", record.reason or "the verdict is: failed", "failed")
        case "completed", _:
            return ""
        case (("failed" | "timed_out"), _):
            why = record.error
            return _element("error", why.message if why else "", why.kind if why else record.status)
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
    # A plain carriage return would come back as a line feed.
    return escape(_NO_XML.sub("", text), {"\r": "&#13;"})
