"""The code evaluator, on programs of its own and on HumanEval's sample set."""

import json
from pathlib import Path
from typing import Any

import pytest

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators.code import CODE, CodeEvaluator
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import needs_sandbox

pytestmark = needs_sandbox

HUMANEVAL = Path(__file__).parents[5] / "shared" / "data" / "humaneval"
PROGRAM = "{prompt}{output}\n{test}\ncheck({entry_point})\n"


async def judge(output: str, options: dict[str, Any], **fields: Any) -> p.Score:
    """Score one answer."""
    evaluator = CODE.make("tests", options, ExecutionEnvironment())
    try:
        return await evaluator.score(ScoringRequest(p.Case(id="c"), output, fields))
    finally:
        await evaluator.aclose()


async def test_a_program_that_exits_with_0_passes() -> None:
    """Exit code 0 is a score of one, under the evaluator's name."""
    score = await judge("x = 4", {"program": "{output}\nassert x == {expected}\n"}, expected=4)
    assert score == p.Score(evaluator="tests", score=1.0, passed=True)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("assert False, 'not so'", "(exit code 1)"),
        ("assert False, 'not so'", "AssertionError: not so"),
        ("raise SystemExit(7)", "exit code 7"),
        ("while True: pass", "timed out after 1 s"),
        ("input()", "EOFError"),
        ("while True: print('x' * 9999)", "wrote more than 512 kB"),
        ("import os; os.abort()", "exit code 134"),
        ("a syntax error", "SyntaxError"),
    ],
)
async def test_any_other_program_fails_with_a_reason(output: str, reason: str) -> None:
    """It is a score, not an error: the batch continues."""
    score = await judge(output, {"program": "{output}", "timeout": 1})
    assert (score.score, score.passed) == (0.0, False)
    assert reason in score.reason
    assert len(score.reason) < 600


@pytest.mark.parametrize(
    ("output", "first"),
    [
        ("def f():\n    assert False, 'not so'\nf()", "AssertionError: not so (exit code 1)"),
        ("raise ValueError('first\\nsecond')", "ValueError: first (exit code 1)"),
        ("def f(", "SyntaxError: '(' was never closed (exit code 1)"),
        ("assert False, 'x' * 3_000", f"AssertionError: {'x' * 184} (exit code 1)"),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][0]",
            "IndexError: list index out of range (exit",
        ),
    ],
)
async def test_a_reason_begins_with_the_exception_and_leaves_out_the_driver(
    output: str, first: str
) -> None:
    """The reason's first line names the exception; the driver's frames are not in it."""
    score = await judge(output, {"program": "{output}"})
    assert score.reason.startswith(first), score
    assert "scoreline-driver" not in score.reason
    assert len(score.reason) < 600


@pytest.mark.parametrize(
    "last", ["256", "1_024", "os.sysconf('SC_OPEN_MAX')", "resource.getrlimit(resource.RLIMIT_NOFILE)[1]"]
)
@pytest.mark.parametrize("first", [3, 50])
async def test_a_program_that_closes_all_up_to_its_limit_passes(first: int, last: str) -> None:
    """The channel of the driver is above the descriptors that a program may open."""
    output = f"import os, resource\nos.closerange({first}, {last})"
    assert (await judge(output, {"program": "{output}"})).passed


async def test_a_program_that_closes_the_channel_of_the_driver_fails_with_that_reason() -> None:
    """No proof of its end is possible, whatever number the channel has."""
    score = await judge("import os\nos.closerange(3, 1 << 20)", {"program": "{output}"})
    assert not score.passed
    assert "closed a descriptor that it did not open" in score.reason


async def test_an_early_end_has_a_reason_of_its_own() -> None:
    """Exit code 0 without the sentinel is named as such, with the end of standard error."""
    score = await judge("import os\nos.write(2, b'last line')\nos._exit(0)", {"program": "{output}"})
    assert not score.passed
    assert score.reason.startswith("ended early: exit code 0"), score
    assert score.reason.endswith("last line"), score


async def test_a_program_of_another_language_prints_the_sentinel() -> None:
    """Its last line proves its end; an exit before that line is a failure."""
    options: dict[str, Any] = {
        "interpreter": ["sh"],
        "program": '{output}\ntest "$x" = 4 || exit 1\necho {sentinel}\n',
    }
    assert CODE.placeholders(options) == frozenset()
    assert [(await judge(each, options)).passed for each in ("x=4", "x=5", "exit 0")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("interpreter", [["sh"], ["python3", "-m", "pytest"]])
def test_a_program_that_can_not_prove_its_end_is_refused(interpreter: list[Any]) -> None:
    """The error names the interpreter and what the program has to print."""
    with pytest.raises(ValueError, match=r"have the program print \{sentinel\} as its last line"):
        CODE.check({"interpreter": interpreter, "program": "{output}"})


async def test_without_a_sandbox_an_early_end_fails_as_well() -> None:
    """The driver and its channel do not depend on bubblewrap."""
    made = CODE.make("tests", {"program": "{output}"}, ExecutionEnvironment())
    sandbox = Sandbox(allow_unsandboxed=True, bubblewrap="no-such-bubblewrap")
    unsandboxed = CodeEvaluator("tests", made._options, sandbox)
    verdicts = [
        (await unsandboxed.score(ScoringRequest(p.Case(id="c"), output, {}))).passed
        for output in ("x = 1", "raise SystemExit(0)")
    ]
    assert verdicts == [True, False]


async def test_an_answer_is_never_read_as_a_template() -> None:
    """Braces in an answer stay braces."""
    score = await judge("x = '{expected}'", {"program": "{output}\nassert len(x) == 10\n"}, expected=4)
    assert score.passed, score


async def test_a_field_that_is_missing_is_a_fault() -> None:
    """Without the field, the answer cannot be scored."""
    with pytest.raises(Permanent, match="entry_point"):
        await judge("x", {"program": "{output}{entry_point}"})


@pytest.mark.skipif(not HUMANEVAL.is_dir(), reason=f"HumanEval's sample set is not at {HUMANEVAL}")
async def test_three_of_humanevals_six_samples_pass() -> None:
    """This is the result of its own harness; the others use a subprocess, sleep too long, or read input."""
    (problem,) = _lines("example_problem.jsonl")
    verdicts = [
        (await judge(sample["completion"], {"program": PROGRAM}, **problem)).passed
        for sample in _lines("example_samples.jsonl")
    ]
    assert verdicts == [False, False, False, True, True, True]


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HUMANEVAL / name).read_text().splitlines()]
