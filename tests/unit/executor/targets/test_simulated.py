"""Targets that need nothing outside: the simulated and the recorded one."""

import random

import pytest

from domain.batch_spec import Options
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, TargetRequest, Transient
from executor.targets.recorded import RECORDED
from executor.targets.simulated import SIMULATED, WRONG, SimulatedTarget, SimulatedTargetOptions

HERE = ExecutionEnvironment()


def question(number: int = 1, expected="42") -> TargetRequest:
    return TargetRequest(f"b.{number:08}", "?", p.Case(id="c", input="?", expected=expected), {})


async def outputs(count: int = 400, **options) -> list[str]:
    target = SIMULATED.make(options, HERE)
    return [(await target.call(question(n))).answer.output for n in range(count)]


async def test_the_same_batch_comes_out_the_same_every_time():
    """Whether an evaluation passes depends on the seed and its id alone."""
    first = await outputs()
    assert first == await outputs()
    assert first != await outputs(seed=1)
    assert set(first) == {"42", WRONG}


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.85, 1.0])
async def test_about_as_many_pass_as_configured(rate):
    """The pass rate is met, and the two ends of it exactly."""
    passed = (await outputs(pass_rate=rate)).count("42") / 400
    assert abs(passed - rate) <= (0.07 if 0 < rate < 1 else 0)


async def test_permanent_faults_meet_the_same_evaluations_again():
    """A permanent fault is a property of the evaluation, so another try does not fix it."""
    target = SIMULATED.make({"permanent_rate": 0.5}, HERE)

    async def failing() -> list[int]:
        failed = []
        for n in range(50):
            try:
                await target.call(question(n))
            except Permanent:
                failed.append(n)
        return failed

    first = await failing()
    assert 10 < len(first) < 40
    assert first == await failing()


async def test_transient_faults_are_drawn_anew():
    """Another attempt may succeed, or no retry would ever help."""
    target = SimulatedTarget(SimulatedTargetOptions(transient_rate=0.5, pass_rate=1), random.Random(3))
    seen = set()
    for _ in range(20):
        try:
            seen.add((await target.call(question())).answer.output)
        except Transient as fault:
            seen.add(fault.kind)
    assert seen == {"42", "simulated"}


async def test_tokens_cost_and_latency_are_on_the_answer():
    """Cost is simulated, too; the latency varies within the jitter."""
    options: Options = {"tokens": 7, "cost_usd": 0.5, "latency": 0.002, "jitter": 0.5, "pass_rate": 1}
    target = SIMULATED.make(options, HERE)
    answers = [(await target.call(question(n, expected={"a": 1}))).answer for n in range(5)]
    assert {(a.output, a.usage.total, a.cost_usd) for a in answers} == {('{"a":1}', 7, 0.5)}
    assert all(1.0 <= a.latency_ms <= 3.0 for a in answers)
    assert len({a.latency_ms for a in answers}) == 5


async def test_a_case_without_an_expected_value_gets_an_answer():
    """The simulated target makes up an output."""
    assert (await SIMULATED.make({"pass_rate": 1}, HERE).call(question(expected=None))).answer.output


async def test_a_call_to_a_recorded_target_fails():
    """Recorded answers travel in the log, so a call to a recorded target fails permanently."""
    target = RECORDED.make({"path": "answers.jsonl"}, HERE)
    with pytest.raises(Permanent, match="no answer was recorded for the case 'c'") as caught:
        await target.call(question())
    assert caught.value.kind == "no_recorded_answer"
    await target.aclose()


def test_a_recorded_target_needs_a_file():
    """Only the shape of the options is checked here."""
    RECORDED.check({"path": "x", "output": "a.b", "id": "task_id"})
    with pytest.raises(ValueError, match="needs the option 'path'"):
        RECORDED.check({})
