"""Which calls of a batch are paid for."""

from dataclasses import dataclass

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from executor.batch_runtime import BatchEvaluator, BatchRuntime
from executor.budget.billable_calls import judge_call, judge_calls, target_call
from executor.budget.task_budget import BillableCall
from executor.contract import Permanent
from taskqueue.budget.estimates import RequestSize
from tests.unit.executor.harness import FakeEvaluator, FakeTarget


@dataclass
class Measuring(FakeTarget):
    """A target that bounds the cost of its calls."""

    def request_size(self, request: object) -> RequestSize:
        """Measure a request; without one, nothing is known of its length."""
        return RequestSize(characters=0 if request is None else 12)


METERED = EvaluatorSpec("fake", "style", is_metered=True)
PLAIN = EvaluatorSpec("fake", "exact")


def runtime(*evaluators: BatchEvaluator | Permanent) -> BatchRuntime:
    targets = (TargetSpec("fake", "a"), TargetSpec("recorded", "b"))
    return BatchRuntime(BatchSpec("batch", targets), (), (Measuring(), FakeTarget()), evaluators)


def test_variants_of_the_same_target_are_one_kind_of_call():
    """Prompts follow targets in the number of a variant; the target measures its requests."""
    bound = BillableCall("target:0", RequestSize(characters=0))
    assert target_call(runtime(), 0) == target_call(runtime(), 2) == bound


def test_a_recorded_answer_is_free():
    """It is known already; a target that measures nothing has no size."""
    assert target_call(runtime(), 1) == BillableCall("target:1", None, is_free=True)


def test_an_evaluator_is_paid_for_if_it_is_metered():
    """Another is free until a cost is observed."""
    assert judge_call(BatchEvaluator(METERED, FakeEvaluator())) == BillableCall("judge:style")
    assert judge_call(BatchEvaluator(PLAIN, FakeEvaluator())) == BillableCall("judge:exact", is_free=True)


def test_an_evaluator_that_could_not_be_created_is_not_called():
    """The evaluations fail before any call."""
    evaluators = (BatchEvaluator(METERED, FakeEvaluator()), Permanent("evaluator", "no key"))
    assert [each.purpose for each in judge_calls(runtime(*evaluators))] == ["judge:style"]
