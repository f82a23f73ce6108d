"""Flags without a value show no type in help; other options keep theirs."""

from typing import Annotated, Any

import typer
from typer.main import get_command

from scoreline.cli.switches import show_as_switches


def helps() -> tuple[list[str], list[str]]:
    """Return the lines of the help of a group and of its command."""
    app = typer.Typer(rich_markup_mode=None)

    @app.callback()
    def group(*, loud: Annotated[bool, typer.Option("--loud", help="Loud.")] = False) -> None:
        """Make noise."""
        typer.echo(loud)

    @app.command()
    def bark(
        *,
        often: Annotated[bool, typer.Option("--often", help="Often.")] = False,
        times: Annotated[int, typer.Option(help="Times.", show_default=False)] = 1,
    ) -> None:
        """Bark."""
        typer.echo((often, times))

    command: Any = get_command(app)
    both = (command, command.commands["bark"])
    for each in both:
        show_as_switches(each)
    texts = (each.get_help(each.context_class(each, info_name="noise")) for each in both)
    above, below = ([" ".join(line.split()) for line in text.splitlines()] for text in texts)
    return above, below


def test_flags_show_no_type_and_options_with_a_value_do():
    """In the help of a group, and of a command."""
    above, below = helps()
    assert {"--loud Loud.", "--help Show this message and exit."} <= set(above)
    assert {"--often Often.", "--times <int> Times.", "--help Show this message and exit."} <= set(below)
