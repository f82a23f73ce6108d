"""Records inside a JSON document: a list at the top, or at a dotted path; held one at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson  # type: ignore[import-untyped]  # ships no types
from ijson.common import ObjectBuilder  # type: ignore[import-untyped]  # as above

from scoreline.submit.datasets.errors import DatasetError, RowError, Unfit
from scoreline.submit.datasets.metered_stream import MeteredStream
from scoreline.submit.datasets.record import (
    MAX_DEPTH,
    DatasetRecord,
    as_fields,
    refuse_depth,
    refuse_too_long,
)

MAX_HINTS = 5
"""Places that an error names where the list of rows was not found."""
MAX_NAME = 200
"""Characters of a key that is kept while the list of rows is looked for."""
MAX_DOCUMENT_DEPTH = 2 * MAX_DEPTH
"""Levels of the whole document: a record, and what is around the list of rows."""

_Events = Iterator[tuple[str, Any]]
_OPENING = ("start_map", "start_array")
_CLOSING = ("end_map", "end_array")


def json_records(stream: BinaryIO, path: Path, *, at: str | None) -> Iterator[DatasetRecord]:
    """Read the objects of one list, numbered from 1."""
    number = 1
    events = _bounded_events(stream)
    try:
        _find_list(events, path, at or "")
        for value in _items(events):
            yield DatasetRecord(number, as_fields(value))
            number += 1
        for _ in events:  # what follows the list must be whole too: else the file was cut off
            pass
    except Unfit as error:
        raise RowError(path, number, str(error), unit="record") from None
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: byte 0x{error.object[error.start]:02x} in a text; save the file as UTF-8"
        raise RowError(path, number, reason, unit="record") from None
    except ijson.JSONError as error:
        raise RowError(path, number, f"broken JSON: {_explained(error)}", unit="record") from None


def _bounded_events(stream: BinaryIO) -> _Events:
    """Parse without paths, which would grow with the square of the depth; raises `Unfit` beyond a limit."""
    metered, depth = MeteredStream(stream), 0
    for event, value in ijson.basic_parse(metered, use_float=True):
        metered.progressed()
        if event in _OPENING:
            depth += 1
            refuse_depth(depth, MAX_DOCUMENT_DEPTH)
        elif event in _CLOSING:
            depth -= 1
        yield event, value


def _explained(error: Exception) -> str:
    message = error.args[0] if error.args else error
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return " ".join(text.split())


def _find_list(events: _Events, path: Path, wanted: str) -> None:
    """Read up to the first item of the list."""
    lists: list[str] = []
    within: list[str] = []
    for event, value in events:
        match event:
            case "map_key":
                within[-1] = value[: max(MAX_NAME, len(wanted)) + 1]
            case "start_array":
                place = ".".join(within)
                if place == wanted:
                    return
                if len(lists) < MAX_HINTS and "item" not in place.split("."):
                    lists.append(place[:MAX_NAME])
                within.append("item")
            case "start_map":
                within.append("")
            case "end_map" | "end_array":
                within.pop()
            case _:
                pass
    raise DatasetError(path, no_list(wanted, lists))


def no_list(wanted: str, lists: list[str]) -> str:
    """Describe a missing list of rows, and where the document has lists."""
    there = ", ".join(repr(name) for name in lists[:MAX_HINTS])
    hint = f"set its path with `records`: there are lists at {there}" if there else "there is none in it"
    where = f"there is no list of rows at {wanted!r}" if wanted else "the document is no list of rows"
    return f"{where}; {hint}"


def _items(events: _Events) -> Iterator[Any]:
    for event, value in events:
        if event == "end_array":
            return
        yield _built(event, value, events)


def _built(event: str, value: Any, events: _Events) -> Any:  # noqa: ANN401 - any JSON value
    """Put one value together; the events of a list of rows are never asked for beyond it."""
    builder, depth, size = ObjectBuilder(), 0, 0
    while True:
        builder.event(event, value)
        depth += (event in _OPENING) - (event in _CLOSING)
        size += len(value) + 4 if isinstance(value, str) else 4
        refuse_too_long(size)
        refuse_depth(depth)
        if depth == 0:
            return builder.value
        event, value = next(events)
