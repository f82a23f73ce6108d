"""YAML of which only what JSON can say is read.

No objects of any language, no dates (they stay text), and no aliases, which would let a small file unfold
into one that fills the memory.
"""

from typing import Any, BinaryIO

import yaml
from yaml.composer import Composer

from scoreline.datasets.errors import Unfit
from scoreline.datasets.record import MAX_DEPTH, kind_of, refuse_too_long

_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")


class PlainLoader(_Safe, Composer):  # type: ignore[misc]  # which of the two loaders is known only here
    """libyaml's events, put together in Python: only so can one item be taken at a time."""

    yaml_constructors = {  # noqa: RUF012 - as the library declares it
        tag: make
        for tag, make in _Safe.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in _PLAIN
    }
    yaml_implicit_resolvers = {  # noqa: RUF012 - as above
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in _Safe.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: BinaryIO) -> None:
        _Safe.__init__(self, stream)
        Composer.__init__(self)
        self.depth = 0
        self.size = 0

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - the library's
        """Compose a node, but for aliases and what is too deep."""
        if self.check_event(yaml.AliasEvent):
            raise Unfit("aliases (*name) are not read here: write the value out")
        self.depth += 1
        if self.depth > MAX_DEPTH + 1:
            raise Unfit(f"lists and objects are nested more than {MAX_DEPTH} deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_scalar_node(self, anchor: Any) -> Any:  # noqa: ANN401 - the library's
        """Compose a scalar, counting what the item has taken so far."""
        node = super().compose_scalar_node(anchor)
        self.size += len(node.value) + 4
        refuse_too_long(self.size)
        return node

    def item(self) -> Any:  # noqa: ANN401 - any JSON value
        """Take the next value whole."""
        return self.value(self.node())

    def node(self) -> yaml.Node:
        """Take the next value as the parser sees it, with its lines."""
        self.depth = self.size = 0
        node: yaml.Node = self.compose_node(None, None)
        return node

    def value(self, node: yaml.Node) -> Any:  # noqa: ANN401 - any JSON value
        """Read a value that was taken."""
        return _with_text_keys(self.construct_document(node))


def _with_text_keys(value: Any) -> Any:  # noqa: ANN401 - what YAML may hold
    match value:
        case dict():
            return {_text_key(key): _with_text_keys(item) for key, item in value.items()}
        case list():
            return [_with_text_keys(item) for item in value]
        case _:
            return value


def _text_key(key: object) -> str:
    if isinstance(key, str):
        return key
    raise Unfit(f"the name of a field must be a text, {key!r} is {kind_of(key)}: put it in quotes")


def told(error: yaml.YAMLError) -> str:
    """Say in one line what a parser did not like, and where."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} (line {error.problem_mark.line + 1})"
    return " ".join(str(error).split())
