"""Records inside a JSON document: a list at the top, or at a dotted path; held one at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson  # type: ignore[import-untyped]  # ships no types
from ijson.common import ObjectBuilder  # type: ignore[import-untyped]  # as above

from scoreline.datasets.errors import BadRow, DatasetError, Unfit
from scoreline.datasets.record import MAX_DEPTH, Record, as_fields, refuse_too_long

_Events = Iterator[tuple[str, str, Any]]
_OPENING = ("start_map", "start_array")
_CLOSING = ("end_map", "end_array")


def json_records(stream: BinaryIO, path: Path, *, at: str | None) -> Iterator[Record]:
    """Read the objects of one list, numbered from 1."""
    number = 1
    events: _Events = iter(ijson.parse(stream, use_float=True))
    try:
        _find_list(events, path, at or "")
        for value in _items(events, at or ""):
            yield Record(number, as_fields(value))
            number += 1
        for _ in events:  # what follows the list must be whole too: else the file was cut off
            pass
    except Unfit as error:
        raise BadRow(path, number, str(error), unit="record") from None
    except ijson.JSONError as error:
        reason = f"broken JSON: {' '.join(str(error).split())}"
        raise BadRow(path, number, reason, unit="record") from None


def _find_list(events: _Events, path: Path, wanted: str) -> None:
    lists = []
    for prefix, event, _ in events:
        if event != "start_array":
            continue
        if prefix == wanted:
            return
        if "item" not in prefix.split("."):
            lists.append(prefix)
    raise DatasetError(path, no_list(wanted, lists))


def no_list(wanted: str, lists: list[str]) -> str:
    """Say that there is no list of rows where it was looked for, and where there are some."""
    there = ", ".join(repr(name) for name in lists[:5])
    hint = f"say where with `records`: there are lists at {there}" if there else "there is none in it"
    where = f"there is no list of rows at {wanted!r}" if wanted else "the document is no list of rows"
    return f"{where}; {hint}"


def _items(events: _Events, wanted: str) -> Iterator[Any]:
    for prefix, event, value in events:
        if event == "end_array" and prefix == wanted:
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
        if depth > MAX_DEPTH:
            raise Unfit(f"lists and objects are nested more than {MAX_DEPTH} deep")
        if depth == 0:
            return builder.value
        _, event, value = next(events)
