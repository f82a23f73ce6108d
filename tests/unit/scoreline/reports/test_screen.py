"""The console of reports."""

import io

import pytest

from scoreline.reports.screen import PIPED_WIDTH, screen


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("output", "columns", "width"),
    [
        (io.StringIO, None, PIPED_WIDTH),
        (io.StringIO, "70", 70),
        (Terminal, "70", 70),
    ],
)
def test_the_width_is_that_of_the_terminal_or_fixed_for_a_pipe(
    monkeypatch: pytest.MonkeyPatch, output: type[io.StringIO], columns: str | None, width: int
) -> None:
    """COLUMNS has precedence, for scripts that want another width."""
    monkeypatch.setattr("sys.stdout", output())
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    assert screen().width == width


def test_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Foreign text is printed as it is."""
    screen().print("[red]x[/]")
    assert capsys.readouterr().out == "[red]x[/]\n"
