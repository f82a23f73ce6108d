"""Commands that are imported and built when they are looked up: of the whole program, one runs."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_command_name, get_group
from typer.models import CommandInfo

from scoreline.cli.switches import show_as_switches


class LazyCommands(MutableMapping[str, Any]):
    """Commands by name, in the order of help; each is built at its first use."""

    def __init__(self, builders: Mapping[str, Callable[[], Any]]) -> None:
        self._commands: dict[str, Any] = dict.fromkeys(builders)
        self._builders = dict(builders)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a command of typer's own click, which has no public type
        if name in self._builders:
            self[name] = self._builders[name]()
        return self._commands[name]

    def __setitem__(self, name: str, command: Any) -> None:  # noqa: ANN401 - as above
        self._builders.pop(name, None)
        self._commands[name] = command
        show_as_switches(command)

    def __delitem__(self, name: str) -> None:
        self._builders.pop(name, None)
        del self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


def lazy_group(modules: Mapping[str, str]) -> type[TyperGroup]:
    """Return the class of a group whose commands are the `app` of a module each."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
            super().__init__(**attributes)
            self.commands = LazyCommands(
                {name: partial(_load, name, module) for name, module in modules.items()}
            )

    return LazyGroup


def _load(name: str, module: str) -> Any:  # noqa: ANN401 - a command of typer's own click, which has no public type
    app: typer.Typer = import_module(module).app
    builders = {_name(info): partial(_build, app, info) for info in app.registered_commands}
    if app.registered_callback is None and len(builders) == 1:
        command: Any = builders.popitem()[1]()
    else:
        empty = copy(app)
        empty.registered_commands = []
        command = get_group(empty)
        command.commands = LazyCommands(builders)
    command.name = name
    return command


def _name(info: CommandInfo) -> str:
    return info.name or get_command_name(info.callback.__name__)  # type: ignore[union-attr]  # set by typer's decorator


def _build(app: typer.Typer, info: CommandInfo) -> Any:  # noqa: ANN401 - as above
    short, markup = app.pretty_exceptions_short, app.rich_markup_mode
    return get_command_from_info(info, pretty_exceptions_short=short, rich_markup_mode=markup)
