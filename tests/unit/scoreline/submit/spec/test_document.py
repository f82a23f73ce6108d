"""A spec file is one document."""

from tests.unit.scoreline.submit.spec.limited_specs import planned, refused


def test_a_second_document_is_refused(tmp_path):
    """Its content would be ignored silently."""
    assert "a second document begins with `---`" in refused(tmp_path, "---\nname: other\n")
    assert planned(tmp_path, "...\n").spec.evaluators
