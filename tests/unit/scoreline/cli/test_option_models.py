"""Option models: each field of a dataclass is a flag of the command that takes it."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from scoreline.cli.option_models import filled


@dataclass(frozen=True, kw_only=True)
class Colours:
    red: Annotated[int, typer.Option(min=0, help="Amount of red.")] = 1
    names: Annotated[list[str] | None, typer.Option("--name", help="Name.")] = None


def invoked(*argv: str) -> tuple[int, str, list[object]]:
    received: list[object] = []
    app = typer.Typer()

    @app.command()
    @filled
    def paint(fence: str, *, colours: Colours, dry: bool = False) -> None:
        """Paint a fence."""
        received.extend([fence, colours, dry])

    result = CliRunner().invoke(app, argv)
    return result.exit_code, result.output, received


def test_a_model_receives_its_flags():
    """A command gets flags and defaults alike, beside its ordinary parameters."""
    code, _, received = invoked("north", "--name", "brick", "--name", "rust", "--dry")
    assert (code, received) == (0, ["north", Colours(red=1, names=["brick", "rust"]), True])


def test_the_bounds_of_a_field_are_checked():
    """A field's bounds are checked like those of an ordinary parameter."""
    code, output, received = invoked("north", "--red", "-1")
    assert code == 2
    assert "--red" in output
    assert received == []


def test_a_field_without_a_default_is_a_required_flag():
    """Without the flag the command does not run, and the error names the flag."""

    @dataclass(frozen=True, kw_only=True)
    class Output:
        file: Annotated[str, typer.Option("--output", help="File.")]

    app, received = typer.Typer(), []

    @app.command()
    @filled
    def write(*, output: Output) -> None:
        """Write a file."""
        received.append(output.file)

    missing, given = (CliRunner().invoke(app, argv) for argv in ([], ["--output", "results.csv"]))
    assert (missing.exit_code, given.exit_code, received) == (2, 0, ["results.csv"])
    assert "--output" in missing.output


def test_help_lists_the_fields():
    """Help shows each field as a flag, and not the model."""
    _, output, _ = invoked("--help")
    assert "Amount of red." in output
    assert "colours" not in output
