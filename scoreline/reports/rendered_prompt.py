"""The prompt as a target got it, rendered again from the case, template and answers on record. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from domain.template import NOTHING, CaseLike, UnknownField, case_fields, render


class RecordedCase(NamedTuple):
    """A case as it was stored, of whatever shape a foreign producer gave it."""

    id: str
    input: JsonValue
    expected: JsonValue
    metadata: dict[str, JsonValue]


def rendered_prompt(template: str, case: CaseLike, stored: Mapping[str, JsonValue] = NOTHING) -> str | None:
    """Fill a template in; None where it names what is not on record."""
    try:
        return render(template, case_fields(case, stored))
    except UnknownField:
        return None
