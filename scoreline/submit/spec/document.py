"""A spec file as values, and the line of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scoreline.submit.datasets.errors import DatasetError, Unfit
from scoreline.submit.datasets.file_formats import opened
from scoreline.submit.datasets.plain_yaml import PlainLoader, yaml_problem
from scoreline.submit.spec.errors import SpecError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and their positions."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[KeyPath, int]

    def place(self, *keys: str | int) -> str:
        """Name the line of a key, or of the nearest key around it."""
        for length in range(len(keys), 0, -1):
            if line := self.lines.get(keys[:length]):
                return f"{self.path}, line {line}"
        return str(self.path)


def read_document(path: Path) -> Document:
    """Read a spec file; raises `SpecError`."""
    try:
        with opened(path) as stream:
            return _read(path, PlainLoader(stream))
    except DatasetError as error:
        raise SpecError(str(path), error.reason) from None
    except Unfit as error:
        raise SpecError(str(path), str(error)) from None
    except yaml.YAMLError as error:
        raise SpecError(str(path), f"broken YAML: {yaml_problem(error)}") from None


def _read(path: Path, loader: PlainLoader) -> Document:
    for wanted in (yaml.StreamStartEvent, yaml.DocumentStartEvent):
        if not loader.check_event(wanted):
            raise SpecError(str(path), "the file is empty")
        loader.get_event()
    node = loader.node()
    loader.get_event()
    if not loader.check_event(yaml.StreamEndEvent):
        raise SpecError(str(path), "a second document begins with `---`: a spec is one document")
    if not isinstance(node, yaml.MappingNode):
        raise SpecError(str(path), "a spec is a mapping of keys, such as `dataset: cases.jsonl`")
    lines: dict[KeyPath, int] = {}
    for keys, line in _lines(node):
        if keys in lines:
            place = f"{path}, line {line}"
            raise SpecError(place, f"{keys[-1]!r} is there twice; first in line {lines[keys]}")
        lines[keys] = line
    return Document(path, loader.value(node), lines)


def _lines(node: yaml.Node, above: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
    match node:
        case yaml.MappingNode(value=pairs):
            for key, value in pairs:
                keys = (*above, str(key.value))
                yield keys, key.start_mark.line + 1
                yield from _lines(value, keys)
        case yaml.SequenceNode(value=items):
            for number, item in enumerate(items):
                yield (*above, number), item.start_mark.line + 1
                yield from _lines(item, (*above, number))
        case _:
            return
