"""The prompt as sent to a target, rendered again from case, template and recorded answers. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from domain.template import NOTHING, CaseLike, UnknownField, case_fields, render


class RecordedCase(NamedTuple):
    """A case as it was stored; an external producer may give its values any shape."""

    id: str
    input: JsonValue
    expected: JsonValue
    metadata: dict[str, JsonValue]


def rendered_prompt(template: str, case: CaseLike, stored: Mapping[str, JsonValue] = NOTHING) -> str | None:
    """Render a template; None where a field of it is not on record."""
    try:
        return render(template, case_fields(case, stored))
    except UnknownField:
        return None
