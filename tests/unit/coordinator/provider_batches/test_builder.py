"""Which requests a provider batch holds."""

from dataclasses import replace

from tests.unit.coordinator.provider_batches.batch_results import KNOWN, answered
from tests.unit.coordinator.provider_batches.harness import (
    SPEC,
    B,
    a_harness,
    cases,
)


async def test_only_evaluations_without_an_answer_are_requested() -> None:
    """Evaluations with a recorded answer are published to executors at once."""
    harness = await a_harness(evaluations=cases(4, _2=KNOWN))
    await harness.run_cycle(3)
    assert [task.evaluation_id for task in await harness.tasks()] == [f"{B}.00000002"]
    assert harness.asked() == {1: 1, 3: 1, 4: 1}
    assert harness.phases() == ["1 queued"] * 4


async def test_a_prompt_that_can_not_be_rendered_fails_only_its_evaluation() -> None:
    """It is never submitted, and the others are answered."""
    harness = await a_harness(2, spec=replace(SPEC, prompts=("{id}", "{nothing}")), evaluations=[
        *cases(1), replace(cases(1)[0], variant=1),
    ])  # fmt: skip
    await answered(harness)
    assert harness.phases() == ["2 queued", "1 failed"]
    assert harness.asked() == {1: 1}


async def test_provider_batches_are_bounded_in_requests_and_bytes() -> None:
    """Either limit alone splits the requests."""
    harness = await a_harness(7, max_requests=3)
    await harness.run_cycle(6)
    assert [provider_batch.size for provider_batch in harness.repository.provider_batches.values()] == [
        3,
        3,
        1,
    ]
    largest = next(iter(harness.repository.provider_batches.values())).bytes
    harness = await a_harness(7, max_requests=100, max_bytes=largest)
    await harness.run_cycle(6)
    assert [provider_batch.size for provider_batch in harness.repository.provider_batches.values()] == [
        3,
        3,
        1,
    ]
    assert len({provider_batch.id for provider_batch in harness.repository.provider_batches.values()}) == 3
