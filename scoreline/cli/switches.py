"""Flags without a value in `--help`: no type is shown beside them."""

from typing import Any


def show_as_switches(command: Any) -> None:  # noqa: ANN401 - a command of typer's own click, which has no public type
    """Remove the type from the help of every flag of a command."""
    shown = [*command.params, command.get_help_option(command.context_class(command))]
    for parameter in shown:
        if parameter is not None and getattr(parameter, "is_flag", False):
            parameter.metavar = ""
