"""Submissions and requests of operators, drawn from the seed."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

from coordinator.submission import NewEvaluation, Recall, SerialPlace
from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from projections.ledger.batch import NewBatch
from tests.simulation.coordinator import Request, Submission

TARGETS = (TargetSpec("scripted", "scripted"),)
JUDGES = tuple(EvaluatorSpec("scripted", name, timeout=0.8) for name in ("first", "second"))
TASK_TIMEOUT = 2.0
RECORDED = p.Answer(output="4", usage=p.TokenUsage(input_tokens=1), cost_usd=0.5)


def plan_submissions(random: Random, until: float) -> list[Submission]:
    """Draw a few small batches."""
    return [_submission(random, f"b{number}", until) for number in range(random.choice((1, 1, 2, 3)))]


def _submission(random: Random, batch_id: str, until: float) -> Submission:
    spec = BatchSpec(
        batch_id,
        TARGETS,
        evaluators=JUDGES[: random.choice((0, 1, 2))],
        retries=random.choice((0, 1, 3)),
        timeout=TASK_TIMEOUT,
    )
    limit = timedelta(seconds=random.uniform(1, 7)) if random.random() < 0.3 else None
    batch = NewBatch(batch_id, spec, priority=random.randint(1, 3), max_duration=limit)
    serial = random.random() < 0.4
    cases = [evaluation_id(batch_id, number) for number in range(1, random.randint(2, 8))]
    evaluations = (_evaluation(random, case, number, serial) for number, case in enumerate(cases, start=1))
    return Submission(random.uniform(0, until / 2), batch, tuple(evaluations))


def _evaluation(random: Random, case_id: str, number: int, serial: bool) -> NewEvaluation:
    case = p.Case(id=case_id, input="2 + 2", expected="4")
    place = _place(random, number) if serial and number > 1 and random.random() < 0.7 else None
    answer = RECORDED if random.random() < 0.1 else None
    question = random.choice(("question-1", None, None, None))
    return NewEvaluation(case, answer=answer, cache_key=question, serial=place)


def _place(random: Random, number: int) -> SerialPlace:
    recalls = random.choice(((), (Recall(number - 1),), (Recall(number - 1, "before"),)))
    return SerialPlace(number - 1, recalls)


def plan_requests(random: Random, submissions: Sequence[Submission], until: float) -> list[Request]:
    """Draw the requests that are made while faults occur."""
    verbs = random.choices(("pause", "resume", "cancel", "retry"), (3, 3, 2, 3), k=random.randint(0, 5))
    batches = [submission.batch.batch_id for submission in submissions]
    return [Request(random.uniform(0, until), random.choice(batches), verb) for verb in verbs]


def last_wishes(random: Random, now: float, batch_ids: Sequence[str]) -> list[Request]:
    """Draw the requests after the last fault: most batches are resumed, some are retried."""
    wishes = [Request(now, batch_id, "resume") for batch_id in batch_ids if random.random() < 0.8]
    return wishes + [
        Request(now + random.uniform(0, 15), batch_id, "retry")
        for batch_id in batch_ids
        if random.random() < 0.3
    ]
