"""Decoders of stored events, many times as fast as validation, derived from the models.

A fast decoder accepts a subset of what `codec.decode` accepts, with the same values; a body that it refuses
is left to the codec. Its structures are derived from the models, so that they cannot drift apart: a field
whose type has no exact counterpart is left out, and bodies that have it are refused.

Two fields stay as they were written: `occurred_at`, which readers compare with the canonical text of a
time, and the scores of `completed`, which the scorecard normalizes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from enum import StrEnum
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import JsonValue
from pydantic.fields import FieldInfo

from domain.ids import NAME_PATTERN
from eventlog.events import EVENT_CLASSES
from eventlog.payloads import Completed

REFUSED = msgspec.DecodeError
"""Raised for bodies that only the codec can judge."""
FAST_TYPES = ("queued", "provisioning", "running", "responded", "scored", "completed")
"""The events of an evaluation that completes at its first attempt: nearly all."""

AS_WRITTEN: dict[tuple[Any, str], type] = {(cls, "occurred_at"): str for cls in EVENT_CLASSES.values()}
AS_WRITTEN[Completed, "scores"] = msgspec.Raw
ALWAYS_WRITTEN = {(Completed, name) for name in ("scores", "usage", "cost_usd", "latency_ms")}
"""Fields that a fold supplies where an event omits them: such an event is refused."""
SCALAR = None | bool | int | float | str
NESTED = 6
"""Levels of nesting in a JSON value; one with more is left to the codec, which has a limit of its own."""
LIMITS = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")
_NAME = rf"\A{NAME_PATTERN[1:-1]}\Z"  # Python's $ also matches before a last newline


class _NoCounterpart(Exception):  # noqa: N818 - a fact about a type
    """A type or limit that msgspec does not check exactly as pydantic does."""


class FastDecoder:
    """Decodes the events of one attempt, whose types are known, from a JSON array of their bodies."""

    __slots__ = ("_checking", "_plain")

    def __init__(self, types: Sequence[str]) -> None:
        self._plain = _decoder([_PLAIN[name] for name in types])
        self._checking = _decoder([_CHECKING[name] for name in types])

    def decode(self, bodies: bytes) -> Sequence[Any]:
        """Decode the bodies, or raise `REFUSED`.

        Names are checked for control characters only where there can be one: JSON escapes all but DEL.
        """
        if b"\\" not in bodies and b"\x7f" not in bodies:
            return self._plain(bodies)
        if b"\\u0000" in bodies:
            raise REFUSED("has a NUL, which the codec replaces")
        return self._checking(bodies)


def _decoder(structs: Sequence[type[msgspec.Struct]]) -> Callable[[bytes], Sequence[Any]]:
    return msgspec.json.Decoder(tuple[tuple(structs)]).decode  # type: ignore[misc]  # made at run time


def _struct(model: type, *, patterns: bool) -> type[msgspec.Struct]:
    """Derive a structure that forbids unknown fields from a model."""
    fields = sorted(_fields(model, patterns=patterns), key=len)  # required ones first
    return msgspec.defstruct(model.__name__, fields, forbid_unknown_fields=True, frozen=True, gc=False)


def _fields(model: Any, *, patterns: bool) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - any model
    infos: dict[str, FieldInfo] = model.__pydantic_fields__
    for name, info in infos.items():
        required = info.is_required() or (model, name) in ALWAYS_WRITTEN or name == "type"
        if (model, name) in AS_WRITTEN:
            yield name, AS_WRITTEN[model, name]
            continue
        try:
            kind = _counterpart(info.annotation, info.metadata, patterns=patterns)
        except _NoCounterpart:
            if required:
                raise
            continue
        yield (name, kind) if required else (name, kind, _default(info, kind))


def _default(info: FieldInfo, kind: Any) -> Any:  # noqa: ANN401 - of any type
    default = info.get_default(call_default_factory=True, validated_data={})
    if is_dataclass(default) or default == {}:
        return msgspec.field(default_factory=kind if default else dict)
    return default


def _counterpart(kind: Any, limits: Iterable[Any], *, patterns: bool) -> Any:  # noqa: ANN401 - of any type
    match get_origin(kind), get_args(kind):
        case (origin, (inner, *more)) if origin is Annotated:
            return _counterpart(inner, [*limits, *more], patterns=patterns)
        case (origin, parts) if origin in (Union, UnionType):
            return reduce(or_, (_counterpart(part, limits, patterns=patterns) for part in parts))
        case (origin, (inner, *more)) if origin is tuple and more == [...]:
            return origin[_counterpart(inner, (), patterns=patterns), ...]
        case (origin, (key, inner)) if origin is dict:
            return origin[key, _counterpart(inner, (), patterns=patterns)]
        case (origin, parts) if origin is Literal and not any(isinstance(part, bool) for part in parts):
            return kind
    return _plain_counterpart(kind, limits, patterns=patterns)


def _plain_counterpart(kind: Any, limits: Iterable[Any], *, patterns: bool) -> Any:  # noqa: ANN401 - a type
    if kind in (str, int, float):
        return Annotated[kind, msgspec.Meta(**_meta(limits, patterns=patterns))]
    if kind in (bool, NoneType) or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return kind
    if kind is JsonValue:
        return reduce(lambda inner, _: SCALAR | list[inner] | dict[str, inner], range(NESTED), SCALAR)  # type: ignore[valid-type]  # made at run time
    if is_dataclass(kind):
        return _struct(kind, patterns=patterns)  # type: ignore[arg-type]  # a class
    raise _NoCounterpart(kind)


def _meta(limits: Iterable[Any], *, patterns: bool) -> dict[str, Any]:
    """Translate the limits of a field."""
    meta: dict[str, Any] = {}
    for limit in limits:
        if isinstance(limit, FieldInfo):
            meta |= _meta(limit.metadata, patterns=patterns)
            continue
        known = {name: getattr(limit, name, None) for name in LIMITS}
        meta |= {name: value for name, value in known.items() if value is not None}
    pattern = meta.pop("pattern", None)
    if pattern not in (None, NAME_PATTERN):
        raise _NoCounterpart(pattern)
    if pattern and patterns:
        meta["pattern"] = _NAME
    return meta


_PLAIN, _CHECKING = (
    {name: _struct(EVENT_CLASSES[name], patterns=patterns) for name in FAST_TYPES}
    for patterns in (False, True)
)
