"""Switches that look like switches in `--help`: a flag takes no value, so none is shown beside it."""

from typing import Any


def show_as_switches(command: Any) -> None:  # noqa: ANN401 - a command of typer's own click, which has no public type
    """Leave the type away from the help of every flag, of this command and of all below it."""
    shown = [*command.params, command.get_help_option(command.context_class(command))]
    for parameter in shown:
        if parameter is not None and getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for below in getattr(command, "commands", {}).values():
        show_as_switches(below)
