"""Where tasks wait: apart where somebody counts the calls, together where nobody does."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from eventlog import payloads as p
from executor.queue_selector import QueueChoice, QueueSelector, in_lines
from executor.stride_scheduler import REST
from taskqueue.keys import delayed_key, tasks_key
from taskqueue.lines import SCORING, Lines, line_of, split, target_of

PLAIN = TargetSpec("simulated", "simulated")
MODEL = TargetSpec("openai", "openai/gpt", is_metered=True)
SPEC = BatchSpec("b", (PLAIN, MODEL), prompts=("{input}", "{input}!"))


def opening(variant: int = 0, *, answered: bool = False) -> p.Queued:
    return p.Queued(p.Case("c"), variant=variant, answer=p.Answer("yes") if answered else None)


def test_a_batch_that_nobody_counts_has_one_line():
    """Its name is the batch's, and what is known already waits there, too."""
    lines = Lines("b", replace(SPEC, targets=(PLAIN,)))
    assert lines.names == ["b"]
    assert {lines.line_for(opening(1)), lines.line_for(opening(answered=True))} == {"b"}


def test_each_counted_target_has_a_line_of_its_own():
    """Whichever prompt it is asked with; what is only to be judged comes first."""
    lines = Lines("b", SPEC)
    assert lines.channels == (SCORING, "target-1", "")
    assert [lines.line_for(opening(number)) for number in range(4)] == ["b", lines.names[1]] * 2
    assert lines.line_for(opening(1, answered=True)) == line_of("b", SCORING)


def test_a_counted_judge_makes_a_line_for_what_is_to_be_judged():
    """Targets that nobody counts stay where they were."""
    judge = EvaluatorSpec("llm_judge", "judge", is_metered=True)
    lines = Lines("b", replace(SPEC, targets=(PLAIN,), evaluators=(judge,)))
    assert lines.channels == (SCORING, "")
    assert lines.line_for(opening()) == "b"


@given(st.text(st.characters(min_codepoint=32), min_size=1), st.sampled_from(["", SCORING, "target-12"]))
def test_a_line_says_which_batch_it_is_of(batch_id, channel):
    """And its keys are those of the batch, in one slot of a cluster."""
    assert split(line_of(batch_id, channel)) == (batch_id, channel)
    ending = f":{channel}" if channel else ""
    assert tasks_key(line_of(batch_id, channel)) == f"eval:tasks:{{{batch_id}}}{ending}"
    assert delayed_key(line_of(batch_id, channel)) == f"eval:delayed:{{{batch_id}}}{ending}"


def test_a_target_is_known_by_its_line():
    """Other lines are of no one target."""
    assert [target_of(channel) for channel in ("target-12", SCORING, "")] == [12, None, None]


def test_a_line_of_which_nobody_knows_is_looked_into_beside():
    """One that had tasks takes all turns; an empty one rests; if all rest the longest rested is asked."""
    openness, lines = QueueSelector(), {"b": ["first", "second"]}
    assert openness.choose(lines, 0.0) == {"b": QueueChoice("second", ("first",))}
    openness.learn({"first": 1, "second": 2}, {"first": 1, "second": 2}, shut={}, now=0.0)
    assert openness.choose(lines, 0.0) == {"b": QueueChoice("first")}
    openness.learn({"first": 2}, {"first": 1}, shut={}, now=0.0)
    assert openness.choose(lines, 0.0) == {"b": QueueChoice("second")}
    assert not openness.are_empty(lines["b"], 0.0)
    openness.learn({"second": 1}, {}, shut={}, now=REST / 2)
    assert openness.are_empty(lines["b"], REST / 2)
    assert openness.choose(lines, REST / 2) == {"b": QueueChoice("first")}
    assert openness.choose(lines, 2 * REST) == {"b": QueueChoice("second", ("first",))}


def test_a_batch_all_of_whose_lines_are_shut_is_not_asked():
    """Until the first of them opens; a shut line is not an empty one."""
    openness, lines = QueueSelector(), {"b": ["first", "second"], "other": ["other"]}
    openness.learn({}, {}, shut={"first": 2.0, "second": 1.0}, now=0.0)
    assert openness.choose(lines, 0.5) == {"other": QueueChoice("other")}
    assert not openness.are_empty(lines["b"], 0.5)
    assert openness.opens_in(0.5) == 0.5
    assert openness.choose(lines, 1.0) == {"b": QueueChoice("second"), "other": QueueChoice("other")}
    assert openness.opens_in(3.0) == float("inf")


def test_an_empty_line_that_takes_permits_sleeps_until_it_is_seen_to_have_tasks():
    """Its batch is dry meanwhile, and asks for nothing."""
    openness, lines = QueueSelector(), {"b": ["line"]}
    openness.learn({"line": 2}, {"line": 1}, shut={"line": 5.0}, metered={"line"}, now=0.0)
    assert openness.are_empty(lines["b"], 0.0)
    assert openness.choose(lines, 0.0) == {}
    assert openness.idle_queues(0.0) == []
    assert openness.opens_in(0.0) == REST
    assert openness.idle_queues(REST) == ["line"]
    openness.saw({"line": 0}, REST)
    assert openness.idle_queues(REST) == []
    openness.saw({"line": 3}, 2 * REST)
    assert not openness.are_empty(lines["b"], 2 * REST)
    assert openness.choose(lines, 2 * REST) == {"b": QueueChoice("line")}
    assert openness.idle_queues(9.0) == []


def test_turns_of_batches_are_those_of_their_lines():
    """What is looked into beside comes once, before the batch's first turn."""
    choices = {"a": QueueChoice("a2", ("a1",)), "b": QueueChoice("b")}
    assert list(in_lines(["a", "b", "a"], choices)) == ["a1", "a2", "b", "a2"]
