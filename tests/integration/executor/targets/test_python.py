"""Python functions as targets and evaluators, in real processes: no failure stops the executor."""

import os
from pathlib import Path

import pytest

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, Transient
from executor.targets.python import PYTHON
from tests.integration.executor.python_functions import (
    SECRET,
    answer,
    question,
    target,
)


@pytest.mark.parametrize(
    ("function", "output"),
    [
        ("echo", "HELLO"),
        ("whole", '["hello","abcd",["city"],"Rome",[]]'),
        ("made", "hello"),
        ("threads", "done"),
        ("noisy", "done"),
        ("speaks_up", "done"),
    ],
)
async def test_a_function_answers(workdir, function, output):
    """This holds for every signature, with threads left running, and however much it prints."""
    assert (await answer(workdir, function)).output == output


async def test_a_function_may_report_what_it_cost(workdir):
    """Usage and cost are read from a returned dict; the latency is measured."""
    got = await answer(workdir, "rich")
    assert (got.output, got.usage, got.cost_usd) == ("x", p.TokenUsage(3, 4), 0.25)
    assert 0 < got.latency_ms < 1_000


async def test_a_function_does_not_see_settings_of_scoreline(workdir):
    """It gets the executor's environment without the servers' URLs."""
    (workdir / "functions.py").write_text("import os\ndef names(prompt): return sorted(os.environ)")
    assert "EVAL_REDIS_URL" not in (await answer(workdir, "names")).output
    assert "PATH" in (await answer(workdir, "names")).output


@pytest.mark.parametrize(
    ("function", "fault", "kind", "reported"),
    [
        ("unlucky", Transient, "python", "Busy: come back"),
        ("refused", Transient, "python", "connection refused"),
        (
            "broken",
            Permanent,
            "python",
            r"KeyError: 'no such thing'[\s\S]*in broken[\s\S]*it printed: I was here",
        ),
        ("abroken", Permanent, "python", "KeyError: 'no such thing'"),
        ("exits", Permanent, "python", "SystemExit: enough"),
        ("aexits", Permanent, "python", "SystemExit: enough"),
        ("leaves", Transient, "host_lost", r"ended with code 3[\s\S]*it printed: so long"),
        ("crashes", Transient, "host_lost", r"by signal 11[\s\S]*in crashes"),
        ("huge", Permanent, "too_large", "more than 524,288 characters"),
        ("odd", Permanent, "python", r"returned a value that is not JSON: [^\n]*serializable$"),
        ("absent", Permanent, "import", "functions:absent can't be imported: AttributeError"),
    ],
)
async def test_what_goes_wrong_is_a_fault_of_the_right_kind(workdir, function, fault, kind, reported):
    """A function may raise, exit, crash or return nonsense: each has its own kind and its message."""
    async with target(workdir, function) as made:
        with pytest.raises(fault, match=reported) as caught:
            await made.call(question())
        assert caught.value.kind == kind


async def test_a_secret_in_an_exception_is_redacted(workdir):
    """Clients often repeat a refused key; it must not be stored with the error."""
    async with target(workdir, "indiscreet") as made:
        with pytest.raises(Permanent, match=r"ValueError: bad key \*\*\*") as caught:
            await made.call(question())
    assert SECRET not in str(caught.value)


async def test_an_error_quotes_only_the_output_of_its_own_call(workdir):
    """A process serves many calls, and output of earlier ones does not explain a failure."""
    async with target(workdir, "shy", slots=1) as made:
        await made.call(question("first"))
        with pytest.raises(Permanent) as caught:
            await made.call(question("second"))
    assert "of the first" not in caught.value.message


@pytest.mark.parametrize("function", ["functions", "a b:c", "a:", ":b", "a:b()", "../a:b"])
def test_an_invalid_function_name_is_refused(function):
    """A typo is reported when the batch is submitted."""
    with pytest.raises(ValueError, match=r"function: write it as package\.module:function$"):
        PYTHON.check({"function": function})


@pytest.mark.parametrize("body", ["pass", "return None", "return {'output': None}"])
async def test_none_is_no_answer(tmp_path: Path, body: str) -> None:
    """A function that returns nothing has failed; its answer is not the text `null`."""
    (tmp_path / "app.py").write_text(f"def answer(prompt): {body}\n")
    here = ExecutionEnvironment(workdir=str(tmp_path), environ=dict(os.environ))
    function = PYTHON.make({"function": "app:answer"}, here)
    with pytest.raises(Permanent, match="app:answer returned None") as fault:
        await function.call(question())
    await function.aclose()
    assert fault.value.kind == "no_answer"
