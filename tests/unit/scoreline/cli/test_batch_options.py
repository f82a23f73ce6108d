"""Flags of a batch: keys of its spec, the batch API of a provider, and where it runs."""

import pytest
import typer

from scoreline.cli.batch_options import BatchOptions, ProviderBatchOptions, RunOptions


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
