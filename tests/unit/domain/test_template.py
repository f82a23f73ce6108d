"""Templates: fields are inserted once, other braces stay, and an unknown field is an error."""

from typing import Any

import pytest

from domain.template import UnknownField, case_fields, placeholders, render
from eventlog import payloads as p


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{input}!", "2 + 2!"),
        ("{{input}}", "{input}"),
        ('{"a": {input}}', '{"a": 2 + 2}'),
        ("{} { input } {1}", "{} { input } {1}"),
        ("{rows.1.name}", "second"),
        ("{rows.0}", '{"name":"first"}'),
        ("{none} {flag} {count}", "null true 3"),
        ("{a.b}", "the field with a dot"),
    ],
)
def test_a_name_in_braces_is_replaced_by_its_field(template, text):
    """Texts are inserted as they are, other values as JSON; a dotted path leads into lists and objects."""
    fields: dict[str, Any] = {
        "input": "2 + 2",
        "rows": [{"name": "first"}, {"name": "second"}],
        "none": None,
        "flag": True,
        "count": 3,
        "a.b": "the field with a dot",
        "a": {"b": "the path"},
    }
    assert render(template, fields) == text


def test_an_inserted_text_is_not_a_template():
    """Data cannot name a field, or lose its braces."""
    assert render("{input}", {"input": "{secret} {{x}}", "secret": "s"}) == "{secret} {{x}}"


@pytest.mark.parametrize("name", ["absent", "rows.2", "rows.-1", "rows.x", "text.0", "rows.0.name.first"])
def test_an_unknown_field_is_named_in_the_error(name):
    """An index beyond the end, and a path into a text, are unknown fields too."""
    fields: dict[str, Any] = {"rows": [{"name": "first"}, {"name": "second"}], "text": "abc"}
    with pytest.raises(UnknownField, match=f"there is no field '{name}'") as raised:
        render(f"{{{name}}}", fields)
    assert raised.value.name == name


def test_placeholders_are_the_names_that_rendering_reads():
    """Escaped braces and pieces of JSON are none."""
    template = '{input} {metadata.topic} {{escaped}} {"json": 1} {input}'
    assert placeholders(template) == {"input", "metadata.topic"}


def test_a_cases_own_fields_win_over_columns_and_stored_values():
    """A column that is called `input` does not replace the input."""
    case = p.Case(id="case-1", input="2 + 2", expected="4", metadata={"input": "column", "topic": "sums"})
    fields = case_fields(case, {"id": "stored", "topic": "stored topic"})
    assert fields == {"id": "case-1", "input": "2 + 2", "expected": "4", "topic": "stored topic"}


def test_an_input_may_name_stored_values_and_nothing_else():
    """Names that are not stored, and inputs that are no text, stay as they are."""
    case = p.Case(id="case-1", input="{answer} {expected} {{answer}}", expected="4")
    assert case_fields(case, {"answer": {"n": 1}})["input"] == '{"n":1} {expected} {{answer}}'
    assert case_fields(case)["input"] == case.input
    rows = p.Case(id="case-2", input=["{answer}"])
    assert case_fields(rows, {"answer": "x"})["input"] == ["{answer}"]
