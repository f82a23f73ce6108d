"""JUnit files: well-formed for any text, and none that is cut short."""

import io
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoreline.reports.export_junit import junit
from tests.unit.scoreline.reports.export_rows import record, texts


@given(
    texts,
    st.sampled_from([("completed", "failed"), ("failed", None), ("cancelled", None), ("running", None)]),
)
def test_junit_is_well_formed_for_any_text(text: str, ending: tuple[str, str | None]) -> None:
    """Names, messages, attributes and outputs with any text parse, and allowed characters round-trip."""
    file = io.BytesIO()
    with junit(file, name=text, endings={("completed", "failed"): 1}) as write:
        write(record(text, status=ending[0], verdict=ending[1]))
    suite = ET.fromstring(file.getvalue()).find("testsuite")
    assert suite is not None
    kept = "".join(c for c in text if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))
    assert (suite.get("name"), suite.findtext("testcase/system-out")) == (kept, kept)


def test_an_interrupted_junit_export_does_not_parse() -> None:
    """A truncated file is invalid XML, so it is not read as a complete report."""
    file = io.BytesIO()
    with pytest.raises(OSError, match="gone"), junit(file, name="n", endings={}):
        raise OSError("gone")
    with pytest.raises(ET.ParseError):
        ET.fromstring(file.getvalue())
