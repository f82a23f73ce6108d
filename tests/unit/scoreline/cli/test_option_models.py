"""Option models: each field of a dataclass is a flag of the command that takes it."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from scoreline.cli.batch_options import BatchOptions, ProviderBatchOptions, RunOptions
from scoreline.cli.option_models import filled
from scoreline.cli.provider_sim import SimulatorOptions
from scoreline.provider_sim.settings import SimulatorSettings, flat


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


def test_flags_of_a_batch_are_keys_of_its_spec():
    """Limits are collected under one key; flags that were not given are None."""
    flags = BatchOptions(name="nightly", rpm_limit=["60"], max_concurrency=["judge=2"]).flags()
    assert flags["name"] == "nightly"
    assert flags["limits"] == {"rpm": 60}
    assert "judge" in flags["named_limits"]
    assert not {"config", "rpm_limit", "tpm_limit", "delay"} & flags.keys()
    assert flags["targets"] is None


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (ProviderBatchOptions(), None),
        (ProviderBatchOptions(batch_api=False), False),
        (ProviderBatchOptions(batch_fallback="sync"), "sync"),
    ],
)
def test_two_flags_are_one_key(options: ProviderBatchOptions, value: object) -> None:
    """`--batch-fallback` implies the batch API."""
    assert options.value() == value


@pytest.mark.parametrize(("batch_api", "fallback"), [(None, "never"), (False, "sync")])
def test_a_fallback_without_the_batch_api_is_rejected(batch_api: bool | None, fallback: str) -> None:
    """An unknown fallback is rejected, too."""
    with pytest.raises(typer.BadParameter):
        ProviderBatchOptions(batch_api=batch_api, batch_fallback=fallback).value()


def test_run_options_become_a_placement(tmp_path):
    """The options of `run`, `resume` and `retry` give the same placement."""
    placement = RunOptions(workers=3, output=[tmp_path / "a.csv"]).placement(checks=False)
    assert (placement.workers, placement.outputs, placement.checks) == (3, (tmp_path / "a.csv",), False)


def test_flags_of_the_simulator_are_its_settings():
    """Flags and settings have the same names and defaults."""
    defaults = {name: value for name, value in flat(SimulatorSettings()).items() if name != "answers"}
    changes = SimulatorOptions().changes()
    assert changes.keys() == defaults.keys()
    lists = {"keys", "models", "forbidden_models"}
    assert {key: changes[key] for key in changes.keys() - lists} == {
        key: defaults[key] for key in defaults.keys() - lists
    }
