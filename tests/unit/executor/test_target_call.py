"""Calls of targets: their requests, deadlines, and the context of serial groups."""

from typing import Any

from domain.batch_spec import BatchSpec, TargetSpec
from eventlog import payloads as p
from tests.builders import BATCH, CASE
from tests.unit.executor.harness import TARGET, Harness, hang, virtually
from tests.unit.executor.steps import run_one


@virtually
async def test_each_variant_and_repetition_has_its_own_request():
    """Prompt and target are those of the variant; the request carries the repetition."""
    spec = BatchSpec("batch", (TARGET, TargetSpec("fake", "other")), ("a {input}", "b {id}"))
    harness = Harness(spec)
    await run_one(harness, p.Queued(case=CASE, variant=3, repetition=5))
    assert (harness.target.asked[0].prompt, harness.target.asked[0].repetition) == ("b case-1", 5)
    running: Any = (await harness.events("e-1"))[2].data
    assert running.target == "other"


@virtually
async def test_a_target_that_times_out_is_retried():
    """The batch's timeout cancels the call and frees the slot."""
    harness = Harness(BatchSpec("batch", (TARGET,), timeout=30.0))
    harness.target.how = hang
    await run_one(harness, p.Queued(case=CASE, retries=1))
    closing = await harness.last("e-1")
    assert isinstance(closing, p.Retrying)
    assert closing.error.kind == "timeout"
    assert harness.target.cancelled == 1


@virtually
async def test_the_context_of_a_serial_group_fills_the_prompt():
    """Stored outputs are fields, earlier turns are history."""
    harness = Harness(BatchSpec("batch", (TARGET,), ("{plan}: {input}",)))
    left = b'{"stored": {"plan": "add"}, "history": [["hello", "hi"]]}'
    await harness.batch_registry.put_contexts(BATCH, {"e-1": left})
    await run_one(harness, p.Queued(case=CASE, in_group=True))
    assert harness.target.asked[0].prompt == "add: 2 + 2"
    assert harness.target.asked[0].history == (("hello", "hi"),)


@virtually
async def test_a_missing_context_is_retried():
    """It may have been lost with Redis; the coordinator writes it again."""
    harness = Harness()
    await run_one(harness, p.Queued(case=CASE, in_group=True))
    closing = await harness.last("e-1")
    assert isinstance(closing, p.Retrying)
    assert closing.error.kind == "context"
