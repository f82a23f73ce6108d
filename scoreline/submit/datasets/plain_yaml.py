"""YAML restricted to what JSON can express.

No objects of any language, no dates (they stay text), and no aliases, which would let a small file unfold
into one that fills the memory. Values are built from parser events, without a tree of nodes between them:
a node takes a hundred times the memory of its text. Only a spec is composed into nodes, for their lines.
"""

from typing import Any, BinaryIO

import yaml
from yaml.composer import Composer

from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.metered_stream import MeteredStream
from scoreline.submit.datasets.record import (
    MAX_DEPTH,
    MAX_NUMBER_LENGTH,
    kind_of,
    refuse_depth,
    refuse_too_long,
    size_text,
)

MAX_NODES = 50_000
"""Values of a document that is composed into nodes."""
MAX_COMPOSED_BYTES = 4 * 1024 * 1024
"""Bytes of such a document."""

_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")
_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset(_TAG + name for name in ("null", "bool", "int", "float", "str"))
_NUMBERS = frozenset({_TAG + "int", _TAG + "float"})
_MERGE, _VALUE, _TEXT = _TAG + "merge", _TAG + "value", _TAG + "str"


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
        self._metered = MeteredStream(stream)
        _Safe.__init__(self, self._metered)
        Composer.__init__(self)
        self._begin = self._depth = self._nodes = 0

    def get_event(self) -> Any:  # noqa: ANN401 - the library's
        """Take the next event."""
        event = super().get_event()
        self._metered.progressed()
        return event

    def item(self) -> Any:  # noqa: ANN401 - any JSON value
        """Take the next value whole; raises `Unfit` where it is more than a record may be."""
        self._begin = self.peek_event().start_mark.index
        return self._build(1)

    def _build(self, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        event = self.get_event()
        refuse_too_long(event.end_mark.index - self._begin)
        match event:
            case yaml.AliasEvent():
                raise _alias()
            case yaml.ScalarEvent():
                return self._scalar(event)
            case yaml.SequenceStartEvent():
                self._enter_collection(event, yaml.SequenceNode, depth)
                return self._sequence(depth)
            case _:
                self._enter_collection(event, yaml.MappingNode, depth)
                return self._mapping(depth)

    def _enter_collection(self, event: Any, node: Any, depth: int) -> None:  # noqa: ANN401 - the library's
        refuse_depth(depth)
        tag, plain = self._tag(event, node), _TAG + ("seq" if node is yaml.SequenceNode else "map")
        if tag != plain:
            raise Unfit(
                f"broken YAML: the tag {tag[:200]!r} is not read here: write a plain list or object"
            )

    def _sequence(self, depth: int) -> list[Any]:
        found = []
        while not self.check_event(yaml.SequenceEndEvent):
            found.append(self._build(depth + 1))
        self.get_event()
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not self.check_event(yaml.MappingEndEvent):
            key = self._key(depth + 1)
            value = self._build(depth + 1)
            if key is None:
                merged |= _merged(value)
            else:
                own[key] = value
        self.get_event()
        return {**merged, **own} if merged else own

    def _key(self, depth: int) -> str | None:
        """Take the name of a field; None for a merge key (<<)."""
        event = self.peek_event()
        if isinstance(event, yaml.ScalarEvent):
            tag = self._tag(event, yaml.ScalarNode)
            if tag in (_MERGE, _VALUE):
                self.get_event()
                return None if tag == _MERGE else str(event.value)
        return _text_key(self._build(depth))

    def _scalar(self, event: Any) -> Any:  # noqa: ANN401 - the library's, and any JSON value
        tag = self._tag(event, yaml.ScalarNode)
        if tag == _TEXT:
            return event.value
        return self._constructed(yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark))

    def _constructed(self, node: yaml.ScalarNode) -> Any:  # noqa: ANN401 - a JSON value
        _refuse_long_number(node)
        make = self.yaml_constructors[node.tag if node.tag in _SCALARS else None]
        try:
            return make(self, node)
        except (ValueError, LookupError, OverflowError):  # the patterns of numbers admit some that are none
            raise _no_value(node) from None

    def _tag(self, event: Any, node: Any) -> str:  # noqa: ANN401 - the library's
        tag: str | None = event.tag
        if tag is None or tag == "!":
            tag = self.resolve(node, getattr(event, "value", None), event.implicit)
        return str(tag)

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - the library's
        """Compose a node, but for aliases and what is too deep or too much."""
        if self.check_event(yaml.AliasEvent):
            raise _alias()
        self._depth, self._nodes = self._depth + 1, self._nodes + 1
        refuse_depth(self._depth - 1, MAX_DEPTH)
        if self._nodes > MAX_NODES:
            raise Unfit(f"there are more than {MAX_NODES:,} values in it: put cases into a dataset")
        if self._metered.offset > MAX_COMPOSED_BYTES:
            limit = size_text(MAX_COMPOSED_BYTES)
            raise Unfit(f"the file is longer than {limit}: put cases into a dataset")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: Any) -> Any:  # noqa: ANN401 - the library's
        """Compose a scalar, but for numbers that take too long to read."""
        node = super().compose_scalar_node(anchor)
        _refuse_long_number(node)
        return node

    def node(self) -> yaml.Node:
        """Take the next value as the parser sees it, with its lines."""
        self._depth = self._nodes = 0
        node: yaml.Node = self.compose_node(None, None)
        return node

    def value(self, node: yaml.Node) -> Any:  # noqa: ANN401 - any JSON value
        """Read a value that was taken."""
        return _with_text_keys(self.construct_document(node))

    def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - the library's
        """Construct a value; raises `Unfit` for a scalar that does not match its tag."""
        try:
            return super().construct_object(node, deep=deep)
        except Unfit:
            raise
        except (ValueError, LookupError, OverflowError):
            raise _no_value(node) from None


def _alias() -> Unfit:
    return Unfit("aliases (*name) are not read here: write the value out")


def _no_value(node: Any) -> Unfit:  # noqa: ANN401 - the library's
    kind = node.tag.rpartition(":")[2][:40]
    return Unfit(f"{str(node.value)[:80]!r} can't be read as {kind}: put it in quotes if it is text")


def _refuse_long_number(node: Any) -> None:  # noqa: ANN401 - the library's
    if node.tag in _NUMBERS and len(node.value) > MAX_NUMBER_LENGTH:
        raise Unfit(
            f"a number of {len(node.value):,} characters, {MAX_NUMBER_LENGTH:,} are allowed: "
            "put it in quotes if it is text"
        )


def _merged(value: object) -> dict[str, Any]:
    """Read what a merge key brings in: an object, or a list of them, of which the first one wins."""
    found: dict[str, Any] = {}
    for each in reversed(value) if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            raise Unfit(f"a merge key (<<) takes an object or a list of them, this is {kind_of(each)}")
        found |= each
    return found


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
    shown = repr(key)[:80]
    raise Unfit(f"the name of a field must be a text, {shown} is {kind_of(key)}: put it in quotes")


def yaml_problem(error: yaml.YAMLError) -> str:
    """Describe a YAML error in one line, with its position."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} (line {error.problem_mark.line + 1})"
    return " ".join(str(error).split())[:500]
