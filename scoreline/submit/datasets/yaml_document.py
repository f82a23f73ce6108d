"""Records inside a YAML document: a list at the top, or at a dotted path; held one at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import yaml

from scoreline.submit.datasets.errors import DatasetError, RowError, Unfit
from scoreline.submit.datasets.json_document import MAX_DOCUMENT_DEPTH, MAX_HINTS, MAX_NAME, no_list
from scoreline.submit.datasets.plain_yaml import PlainLoader, yaml_problem
from scoreline.submit.datasets.record import DatasetRecord, as_fields, refuse_depth

SECOND_DOCUMENT = "a second document begins with `---`: put all rows into one list"


def yaml_records(stream: BinaryIO, path: Path, *, at: str | None) -> Iterator[DatasetRecord]:
    """Read the objects of one list, numbered from 1."""
    number = 0
    try:
        loader = PlainLoader(stream)
        _enter(loader, path, at or "")
        while not loader.check_event(yaml.SequenceEndEvent):
            number += 1
            yield DatasetRecord(number, as_fields(loader.item()))
        loader.get_event()
        while not loader.check_event(yaml.StreamEndEvent):  # to its end: what follows must be readable too
            if loader.check_event(yaml.DocumentStartEvent):
                raise DatasetError(path, SECOND_DOCUMENT)
            _skipped(loader)
    except Unfit as error:
        raise RowError(path, number or 1, str(error), unit="record") from None
    except yaml.YAMLError as error:
        raise RowError(path, number or 1, f"broken YAML: {yaml_problem(error)}", unit="record") from None


def _enter(loader: PlainLoader, path: Path, wanted: str) -> None:
    """Read up to the first item of the list."""
    loader.get_event()
    if loader.check_event(yaml.StreamEndEvent):
        raise DatasetError(path, "the file is empty")
    loader.get_event()
    for part in wanted.split(".") if wanted else ():
        names = _enter_value(loader, part)
        if names is not None:
            there = ", ".join(repr(name) for name in names) or "nothing"
            raise DatasetError(
                path, f"there is no list of rows at {wanted!r}: instead of {part!r} there is {there}"
            )
    if not loader.check_event(yaml.SequenceStartEvent):
        raise DatasetError(path, no_list(wanted, _lists(loader)))
    loader.get_event()


def _enter_value(loader: PlainLoader, wanted: str) -> list[str] | None:
    """Go to the value of a key; returns the first keys there are where it is not among them."""
    names: list[str] = []
    if not loader.check_event(yaml.MappingStartEvent):
        return names
    loader.get_event()
    while not loader.check_event(yaml.MappingEndEvent):
        key = _skipped(loader)
        if key == wanted:
            return None
        if len(names) < MAX_HINTS:
            names.append(key[:MAX_NAME])
        _skipped(loader)
    return names


def _lists(loader: PlainLoader) -> list[str]:
    """Name the first keys of a mapping whose values are lists."""
    found: list[str] = []
    if not loader.check_event(yaml.MappingStartEvent):
        return found
    loader.get_event()
    while not loader.check_event(yaml.MappingEndEvent):
        key = _skipped(loader)
        if len(found) < MAX_HINTS and loader.check_event(yaml.SequenceStartEvent):
            found.append(key[:MAX_NAME])
        _skipped(loader)
    return found


def _skipped(loader: PlainLoader) -> str:
    """Pass over one node, however large; returns the text of a scalar."""
    depth, first = 0, loader.peek_event()
    while True:
        event = loader.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        refuse_depth(depth, MAX_DOCUMENT_DEPTH)
        if depth <= 0:
            return str(getattr(first, "value", "?"))
