"""Requests of a provider batch."""

from dataclasses import replace

import pytest

from coordinator.operations import OperationRejected
from coordinator.provider_batches.requests import custom_id, number_in, unfit, uses_provider_batch_in
from domain.batch_spec import BatchFallback, BatchSpec, TargetSpec
from eventlog import payloads as p
from projections.ledger.provider_batches import ProviderBatch
from tests.builders import START
from tests.unit.coordinator.provider_batches.batch_results import KNOWN
from tests.unit.coordinator.provider_batches.harness import (
    SPEC,
    B,
    a_harness,
)

RECORDED = TargetSpec("recorded", "recorded:answers.jsonl", {"path": "answers.jsonl"})


async def test_targets_without_a_batch_api_are_rejected() -> None:
    """The message names the target; recorded answers are allowed beside."""
    http = TargetSpec("http", "https://example.org", {})
    assert unfit(replace(SPEC, targets=(*SPEC.targets, RECORDED))) is None
    assert "https://example.org" in (unfit(replace(SPEC, targets=(http,))) or "")
    harness = await a_harness(1, spec=BatchSpec("a batch", (http,)))
    with pytest.raises(OperationRejected, match=r"https://example\.org"):
        await harness.operator.ask_in_batches(B, BatchFallback.SYNC)


def test_request_ids_contain_their_provider_batch() -> None:
    """A result is attributed by its id, in characters that the provider allows."""
    provider_batch = ProviderBatch("0123456789abcdef", B, 0, (7,), (1,), 1, "", START, START)
    assert custom_id(provider_batch.id, 7) == "0123456789abcdef-00000007"
    assert number_in(provider_batch, custom_id(provider_batch.id, 123_456_789)) == 123_456_789
    for other in ("fedcba9876543210-00000007", "7", "0123456789abcdef-7", ""):
        assert number_in(provider_batch, other) is None


def test_only_openings_without_an_answer_are_requested() -> None:
    """The batch must use provider batches, and the target's provider must have them."""
    opening = p.Queued(case=p.Case(id="a"))
    spec = replace(SPEC, targets=(*SPEC.targets, RECORDED))
    uses_provider_batch = uses_provider_batch_in(spec)
    assert uses_provider_batch(opening)
    assert not uses_provider_batch(replace(opening, answer=KNOWN))
    assert not uses_provider_batch(replace(opening, variant=1))
    assert not uses_provider_batch(replace(opening, in_group=True))
    assert not uses_provider_batch_in(replace(spec, batch_api=None))(opening)
