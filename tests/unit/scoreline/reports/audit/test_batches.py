"""The progress bar of an audit."""

from io import StringIO

from scoreline.reports.audit.batches import progress_bar


def test_a_progress_bar_shows_any_name(monkeypatch):
    """A batch id with invalid markup is printed as text."""
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("verifying nightly[/]", 1) as advance:
        advance(1)
    assert "nightly[/]" in terminal.getvalue()
