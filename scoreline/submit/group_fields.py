"""Fields of a case that place it in a serial group.

    serial: true           one after the other, in the order of the dataset
    conversation: NAME     a turn: it sees what was asked and answered in the earlier turns of that name
    store_output_as: NAME  later cases may name its output

A later case uses a stored output where its prompt has the placeholder `{NAME}`, or where its input does: in
inputs, only names that an earlier case stores are placeholders, so all other braces stay as they are. A
field that the row itself has comes before a stored output of the same name.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from psycopg import AsyncConnection
from pydantic import JsonValue

from domain.template import placeholders
from eventlog.payloads import Case
from projections.datasets.repository import mentions
from scoreline.command_error import CommandError
from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.file_formats import opened
from scoreline.submit.datasets.record import kind_of
from scoreline.submit.datasets.sources import FileSource, ImportedSource, Source, SyntheticSource

GROUP_FIELDS = ("serial", "conversation", "store_output_as")
"""The fields of a row that are read here."""

MAX_GROUPS = 200_000
"""Conversations, stored names and groups of a dataset: they are all in memory while it is submitted."""
MAX_NAME = 200
"""Characters of a conversation's or a stored output's name."""

GroupKey = tuple[str, str]
"""What ties cases together: a kind of tie, and its name."""

_CHUNK = 1024 * 1024
_WORD = re.compile("|".join(GROUP_FIELDS).encode())
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_RESERVED = frozenset({"id", "input", "expected", "output"})
_NONE: frozenset[str] = frozenset()


class GroupFields(NamedTuple):
    """How one case is tied to others."""

    is_serial: bool = False
    conversation: str | None = None
    stores: str | None = None
    uses: tuple[frozenset[str], ...] = ()
    """Names of stored outputs, for each prompt; the input's are among all of them."""

    @property
    def keys(self) -> list[GroupKey]:
        """Name all ties of the case, whichever prompt makes them."""
        found = [("serial", "")] if self.is_serial else []
        if self.conversation is not None:
            found.append(("conversation", self.conversation))
        names = _NONE.union(*self.uses, [self.stores] if self.stores else [])
        return [*found, *(("stored", name) for name in sorted(names))]


class GroupFieldReader:
    """Reads the marks of cases in the order of the dataset, remembering which names are stored."""

    def __init__(self, prompts: Sequence[frozenset[str]]) -> None:
        self.stored: set[str] = set()
        self._prompts = prompts

    def next(self, case: Case) -> GroupFields:
        """Read the marks of the next case; raises `Unfit`."""
        own = case.metadata
        stores = _stored_name(own.get("store_output_as"))
        marks = GroupFields(
            _is_set(own.get("serial")), _named(own.get("conversation")), stores, self._uses(case)
        )
        if stores is not None:
            self.stored.add(stores)
            refuse_too_many(len(self.stored))
        return marks

    def _uses(self, case: Case) -> tuple[frozenset[str], ...]:
        if not self.stored:
            return ()
        known = self.stored.difference(case.metadata)
        in_input = placeholders(case.input) & known if isinstance(case.input, str) else _NONE
        return tuple(in_input | (names & known) for names in self._prompts)


def _is_set(value: JsonValue) -> bool:
    match value:
        case bool():
            return value
        case None | "":
            return False
        case str() if value.lower() in ("true", "false"):
            return value.lower() == "true"
        case _:
            raise Unfit(f"`serial` must be true or false, this is {kind_of(value)}")


def _named(value: JsonValue) -> str | None:
    match value:
        case None | "":
            return None
        case bool() | float() | list() | dict():
            raise Unfit(f"`conversation` must be a text or a whole number, this is {kind_of(value)}")
        case _:
            return _short(str(value), "conversation")


def _short(name: str, mark: str) -> str:
    if len(name) > MAX_NAME:
        raise Unfit(f"`{mark}` has {len(name):,} characters, {MAX_NAME} are allowed")
    return name


def refuse_too_many(ties: int) -> None:
    """Raise `Unfit` where a dataset ties more cases together than can be kept in memory."""
    if ties > MAX_GROUPS:
        raise Unfit(
            f"more than {MAX_GROUPS:,} conversations, stored names and groups: split the dataset, "
            "each of them whole in one part"
        )


def _stored_name(value: JsonValue) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise Unfit("`store_output_as` must be a name of letters, digits, - and _, to be used as {name}")
    if value in _RESERVED:
        raise Unfit(f"`store_output_as` can't be {value!r}: every case has a field of that name")
    return _short(value, "store_output_as")


async def may_have_group_fields(source: Source, *, postgres_url: str | None) -> bool:
    """Whether the names of these fields occur in a dataset; if not, its rows need not be read for them."""
    match source:
        case FileSource(path=path):
            return _mentions(path)
        case ImportedSource(project=project, name=name):
            if postgres_url is None:
                raise CommandError(
                    f"The dataset {name!r} is in the database, and no database is connected."
                )
            async with await AsyncConnection.connect(postgres_url) as conn:
                return await mentions(conn, GROUP_FIELDS, project=project, name=name)
        case SyntheticSource():
            return False


def _mentions(path: Path) -> bool:
    overlap = b""
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            if _WORD.search(overlap + chunk):
                return True
            overlap = chunk[-32:]
    return False
