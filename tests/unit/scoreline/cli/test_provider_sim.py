"""Flags of the simulated provider: its settings, and the file of its answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from scoreline.cli import provider_sim
from scoreline.cli.provider_sim import SimulatorOptions
from scoreline.command_error import CommandError
from scoreline.provider_sim import run
from scoreline.provider_sim.settings import SimulatorSettings, flat

URL = "http://127.0.0.1:8787"


def invoked(*argv: str) -> tuple[Result, list[SimulatorSettings]]:
    """Run the command with a simulator that announces its address and ends."""
    received: list[SimulatorSettings] = []

    async def until_stopped(
        settings: SimulatorSettings, *, announce: Callable[[str], None], **_: Any
    ) -> None:
        received.append(settings)
        announce(URL)

    app = typer.Typer()
    app.command()(provider_sim.run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "run_until_stopped", until_stopped)
        return CliRunner().invoke(app, argv), received


def simulated(*argv: str) -> SimulatorSettings:
    """Return the settings of the simulator that runs; raises its error."""
    ran, received = invoked(*argv)
    if ran.exception is not None:
        raise ran.exception
    return received[0]


def announced(*argv: str) -> str:
    """Return what is printed."""
    return invoked(*argv)[0].output


def test_flags_of_the_simulator_are_its_settings():
    """Flags and settings have the same names and defaults."""
    defaults = {name: value for name, value in flat(SimulatorSettings()).items() if name != "answers"}
    changes = SimulatorOptions().changes()
    assert changes.keys() == defaults.keys()
    lists = {"keys", "models", "forbidden_models"}
    assert {key: changes[key] for key in changes.keys() - lists} == {
        key: defaults[key] for key in defaults.keys() - lists
    }


def test_a_file_of_answers_sets_the_mode(tmp_path: Path):
    """Whatever mode was given."""
    answers = tmp_path / "answers.json"
    answers.write_text('{"2 + 2": "4", "*": "none"}')
    found = flat(simulated("--mode", "echo", "--answers", str(answers)))
    assert (found["mode"], found["answers"]) == ("map", {"2 + 2": "4", "*": "none"})


def test_an_unreadable_file_of_answers_is_named(tmp_path: Path):
    """A missing file, and one that is no JSON."""
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for path in (tmp_path / "missing.json", broken):
        with pytest.raises(CommandError, match="can't read the answers in") as error:
            simulated("--answers", str(path))
        assert str(path) in str(error.value)


def test_settings_that_contradict_each_other_are_an_error():
    """The text is that of the simulator."""
    with pytest.raises(CommandError, match="mode"):
        simulated("--mode", "loud")


def test_the_address_is_printed_for_people_or_for_programs():
    """One JSON object, or the variables to export."""
    assert json.loads(announced("--json")) == {"url": URL}
    assert f"export ANTHROPIC_BASE_URL={URL}\n" in announced()
