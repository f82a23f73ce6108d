"""Commands are imported and built when they are looked up, and not before."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from scoreline.cli.lazy_commands import LazyCommands, lazy_group

BUILT: list[str] = []


def builder(name: str) -> Callable[[], Any]:
    """Return what builds a command and records that it did."""

    def build() -> Any:
        BUILT.append(name)
        app = typer.Typer()
        app.command(name)(lambda: None)
        return get_command(app)

    return build


@pytest.fixture
def commands() -> LazyCommands:
    """Two commands that are not built yet."""
    BUILT.clear()
    return LazyCommands({name: builder(name) for name in ("run", "list")})


def test_a_command_is_built_once_and_alone(commands: LazyCommands):
    """Names are known without it, in the order of help."""
    assert (list(commands), len(commands), "run" in list(commands), BUILT) == (["run", "list"], 2, True, [])
    assert commands["list"] is commands["list"]
    assert BUILT == ["list"]


def test_commands_may_be_replaced_and_removed(commands: LazyCommands):
    """As typer does with a mapping of its own."""
    commands["run"] = commands["list"]
    del commands["list"]
    assert (commands["run"].name, list(commands), BUILT) == ("list", ["run"], ["list"])
    with pytest.raises(KeyError):
        commands["list"]


GROUP = """
import typer
app = typer.Typer(help="Some commands.")

@app.command(epilog="Example: one")
def one_thing(): "Do one thing."

@app.command("other")
def two(): "Do another."
"""
SINGLE = """
import typer
app = typer.Typer()

@app.command()
def run(): "Do it."
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program of a group and a single command, each in a module of its own."""
    for name, text in {"lazy_group_of_test": GROUP, "lazy_single_of_test": SINGLE}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    app = typer.Typer(cls=lazy_group({"things": "lazy_group_of_test", "do": "lazy_single_of_test"}))
    app.callback()(lambda: None)
    return get_command(app)


def test_a_module_is_imported_when_its_command_is_looked_up(program: Any):
    """The modules of other commands are not."""
    assert program.commands["do"].name == "do"
    assert "lazy_single_of_test" in sys.modules
    assert "lazy_group_of_test" not in sys.modules


def test_a_group_has_the_names_help_and_epilogs_of_its_module(program: Any):
    """A command without a name has that of its function."""
    group = program.commands["things"]
    assert (group.name, group.help, list(group.commands)) == (
        "things",
        "Some commands.",
        ["one-thing", "other"],
    )
    one = group.commands["one-thing"]
    assert (one.name, one.help, one.epilog) == ("one-thing", "Do one thing.", "Example: one")
