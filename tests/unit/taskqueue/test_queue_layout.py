"""Partitions of a batch's queue: one for each metered target, one in all without metering."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from eventlog import payloads as p
from taskqueue.keys import tasks_key
from taskqueue.queue_layout import SCORING_PARTITION, QueueLayout, queue_name, split_queue, target_number

PLAIN = TargetSpec("simulated", "simulated")
MODEL = TargetSpec("openai", "openai/gpt", is_metered=True)
SPEC = BatchSpec("b", (PLAIN, MODEL), prompts=("{input}", "{input}!"))


def opening(variant: int = 0, *, answered: bool = False) -> p.Queued:
    return p.Queued(p.Case("c"), variant=variant, answer=p.Answer("yes") if answered else None)


def test_a_batch_without_metering_has_one_queue():
    """It is named like the batch, and attempts that have an answer use it, too."""
    layout = QueueLayout("b", replace(SPEC, targets=(PLAIN,)))
    assert layout.queues == ["b"]
    assert {layout.queue_for(opening(1)), layout.queue_for(opening(answered=True))} == {"b"}


def test_each_metered_target_has_a_partition_of_its_own():
    """The prompt has no influence, and the scoring partition is served first."""
    layout = QueueLayout("b", SPEC)
    assert layout.partitions == (SCORING_PARTITION, "target-1", "")
    assert [layout.queue_for(opening(number)) for number in range(4)] == ["b", layout.queues[1]] * 2
    assert layout.queue_for(opening(1, answered=True)) == queue_name("b", SCORING_PARTITION)


def test_a_metered_evaluator_adds_the_scoring_partition():
    """Targets without metering stay in the default partition."""
    judge = EvaluatorSpec("llm_judge", "judge", is_metered=True)
    layout = QueueLayout("b", replace(SPEC, targets=(PLAIN,), evaluators=(judge,)))
    assert layout.partitions == (SCORING_PARTITION, "")
    assert layout.queue_for(opening()) == "b"


@given(
    st.text(st.characters(min_codepoint=32), min_size=1),
    st.sampled_from(["", SCORING_PARTITION, "target-12"]),
)
def test_a_queue_name_contains_batch_and_partition(batch_id, partition):
    """Its keys share the batch's cluster slot."""
    assert split_queue(queue_name(batch_id, partition)) == (batch_id, partition)
    ending = f":{partition}" if partition else ""
    assert tasks_key(queue_name(batch_id, partition)) == f"eval:tasks:{{{batch_id}}}{ending}"


def test_a_partition_names_its_target():
    """The scoring and default partitions have no single target."""
    assert [target_number(partition) for partition in ("target-12", SCORING_PARTITION, "")] == [
        12,
        None,
        None,
    ]
