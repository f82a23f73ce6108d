"""Python functions as targets and evaluators, in real processes: no failure stops the executor."""

import ast
import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from domain.batch_spec import EvaluatorSpec
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest, TargetRequest, Transient
from executor.evaluators.python import PYTHON as PYTHON_EVALUATOR
from executor.python_host import function_server
from executor.targets.python import PYTHON, PythonTarget
from tests.waiting import until

SECRET = "canary-5c1e"
FUNCTIONS = """
    import asyncio, ctypes, fcntl, os, re, subprocess, sys, threading, time

    def echo(prompt): return prompt.upper()
    def whole(prompt, case, *, fields, city, **rest):
        return [prompt, case["expected"], sorted(fields), city, sorted(rest)]
    def rich(prompt):
        return {"output": "x", "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "cost_usd": 0.25}
    def pid(prompt):
        time.sleep(0.05)
        return os.getpid()
    async def apid(prompt):
        await asyncio.sleep(0.05)
        return os.getpid()
    class Made:
        async def __call__(self, prompt): return prompt
    made = Made()

    class Busy(Exception): transient = True
    def unlucky(prompt): raise Busy("come back")
    def refused(prompt): raise ConnectionRefusedError("connection refused")
    def broken(prompt):
        print("I was here")
        raise KeyError("no such thing")
    def indiscreet(prompt): raise ValueError("bad key " + os.environ["SOME_API_KEY"])
    def shy(prompt):
        if prompt != "first": raise ValueError(prompt)
        print("of the first")
        return prompt
    async def abroken(prompt): raise KeyError("no such thing")

    def leaves(prompt):
        print("so long")
        os._exit(3)
    def exits(prompt): sys.exit("enough")
    async def aexits(prompt): sys.exit("enough")
    def crashes(prompt): ctypes.string_at(0)
    def huge(prompt): return "x" * (1 << 24)
    def odd(prompt): return object()
    def noisy(prompt):
        for _ in range(64): print("y" * (1 << 20))
        return "done"
    def threads(prompt):
        threading.Thread(target=time.sleep, args=(600,)).start()
        return "done"
    def speaks_up(prompt):
        os.write(1, b"\\x00\\x00\\x00\\x02{}")
        return input() if False else sys.stdin.read() + "done"

    def hangs(prompt, *, where):
        open(where, "w").write(f"{os.getpid()} {subprocess.Popen(['sleep', '600']).pid}")
        re.match(r"(a+)+$", "a" * 60 + "b")  # for centuries, and no other thread gets a turn
    def stops_reading(prompt):
        for fd in map(int, os.listdir("/proc/self/fd")):
            try:
                if fd > 2 and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY: os.close(fd)
            except OSError:
                pass
        return prompt
    async def deaf(prompt, *, where):
        if prompt == "quick": return "x"
        if prompt == "slow":
            await asyncio.sleep(0 if os.path.exists(where) else 600)
            return "y"
        open(where, "w").write(str(os.getpid()))
        if prompt == "kind": await asyncio.sleep(600)
        time.sleep(600)

    def same(output, expected): return output == expected
    def part(output, *, case): return len(output) / len(case["expected"])
    def reported(output): return {"score": 0.2, "passed": True, "reason": "because"}
    def only_passed(output): return {"passed": False}
    def silly(output): return "good"
    def nan(output): return float("nan")
"""


SPRAYS = """
import os
for fd in range(3, 64):
    try:
        os.write(fd, b"garbage" * 9)
    except OSError:
        pass
"""


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "functions.py").write_text(textwrap.dedent(FUNCTIONS))
    return tmp_path


def environment(workdir: Path, slots: int = 4) -> ExecutionEnvironment:
    environ = {"PATH": os.environ["PATH"], "EVAL_REDIS_URL": "redis://secret", "SOME_API_KEY": SECRET}
    return ExecutionEnvironment(workdir=str(workdir), slots=slots, environ=environ)


@asynccontextmanager
async def target(workdir: Path, function: str, slots: int = 4) -> AsyncIterator[PythonTarget]:
    made = PYTHON.make({"function": f"functions:{function}"}, environment(workdir, slots))
    try:
        yield made
    finally:
        await made.aclose()


def question(prompt: str = "hello", **fields) -> TargetRequest:
    return TargetRequest("b.00000001", prompt, p.Case(id="c", expected="abcd"), {"city": "Rome", **fields})


async def answer(workdir: Path, function: str, prompt: str = "hello", **fields) -> p.Answer:
    async with target(workdir, function) as made:
        return (await made.call(question(prompt, **fields))).answer


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def are_gone(pids: list[str]) -> bool:
    return all(is_gone(int(pid)) for pid in pids)


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


@pytest.mark.parametrize(
    ("source", "fault", "reported"),
    [
        ("import no_such_module", Permanent, "No module named 'no_such_module'"),
        ("def answer(:", Permanent, "SyntaxError"),
        ("import sys; sys.exit(1)", Permanent, "SystemExit: 1"),
        ("import os; print('oh'); os._exit(5)", Permanent, r"ended with code 5 while[\s\S]*printed: oh"),
        ("import os; os.kill(os.getpid(), 9)", Transient, "by signal 9"),
        ("answer = 3", Permanent, "functions:answer is not a function"),
        (SPRAYS, Permanent, "wrote to a protocol descriptor"),
    ],
)
async def test_a_module_that_can_not_be_imported_is_reported(workdir, source, fault, reported):
    """Whatever an import does, only this target fails."""
    (workdir / "functions.py").write_text(source)
    async with target(workdir, "answer") as made:
        with pytest.raises(fault, match=reported):
            await made.call(question())


async def test_a_directory_that_is_not_here_is_reported(workdir):
    """An executor on another machine may lack the submitter's files."""
    with pytest.raises(Permanent, match=r"nowhere' of the batch can't be entered") as caught:
        await answer(workdir / "nowhere", "echo")
    assert caught.value.kind == "import"


async def test_a_failed_import_is_cached(workdir):
    """Ten thousand evaluations do not start ten thousand processes for the same error."""
    (workdir / "functions.py").write_text("open('count', 'a').write('x')\nraise ValueError")
    async with target(workdir, "answer") as made:
        for _ in range(5):
            with pytest.raises(Permanent, match="can't be imported"):
                await made.call(question())
    assert (workdir / "count").read_text() == "x"


async def test_a_plain_function_gets_as_many_processes_as_there_are_slots(workdir):
    """Calls of a plain function run side by side, one a process, and processes serve again."""
    async with target(workdir, "pid", slots=2) as made:
        replies = await asyncio.gather(*(made.call(question()) for _ in range(6)))
        assert len({reply.answer.output for reply in replies}) == len(made.pool.hosts) == 2


async def test_a_coroutine_function_shares_one_process(workdir):
    """Calls of a coroutine function wait together."""
    async with target(workdir, "apid", slots=50) as made:
        replies = await asyncio.gather(*(made.call(question()) for _ in range(50)))
        assert len({reply.answer.output for reply in replies}) == len(made.pool.hosts) == 1


async def test_a_call_that_is_cancelled_is_ended_with_all_it_started(workdir):
    """A hanging function is killed at once, with its children, and the next call gets a new process."""
    where = workdir / "pids"
    async with target(workdir, "hangs", slots=1) as made:
        for _ in range(2):
            call = asyncio.create_task(made.call(question(where=str(where))))
            pids = await until(lambda: where.exists() and where.read_text().split())
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(partial(are_gone, pids))
            where.unlink()


async def test_a_cancellable_coroutine_is_cancelled_alone(workdir):
    """Other calls in the same process continue."""
    where = workdir / "pid"
    async with target(workdir, "deaf") as made:
        call = asyncio.create_task(made.call(question("kind", where=str(where))))
        pid = int(await until(lambda: where.exists() and where.read_text()))
        call.cancel()
        await until(lambda: not made.pool.hosts[0].calls)
        assert (await made.call(question("quick", where=""))).answer.output == "x"
        assert not is_gone(pid)


async def test_a_coroutine_that_blocks_is_killed_with_its_process(workdir):
    """Other calls of that process are made again, and the next one gets a new process."""
    where = workdir / "pid"
    async with target(workdir, "deaf") as made:
        innocent = asyncio.create_task(made.call(question("slow", where=str(where))))
        await until(lambda: made.pool.hosts and made.pool.hosts[0].calls)
        guilty = asyncio.create_task(made.call(question("deaf", where=str(where))))
        pid = int(await until(lambda: where.exists() and where.read_text()))
        guilty.cancel()
        assert (await innocent).answer.output == "y"
        await until(lambda: is_gone(pid))
        assert (await made.call(question("quick", where=""))).answer.output == "x"


async def test_a_call_that_a_lost_process_never_started_is_made_again(workdir):
    """A process that answers and can't read the next request ends; the next call gets another one."""
    async with target(workdir, "stops_reading", slots=1) as made:
        answers = [(await made.call(question(str(n)))).answer.output for n in range(5)]
    assert answers == ["0", "1", "2", "3", "4"]


async def test_closing_leaves_no_process(workdir):
    """A running call is cancelled, and its process has ended when closing is done."""
    where = workdir / "pids"
    async with target(workdir, "hangs") as made:
        call = asyncio.create_task(made.call(question(where=str(where))))
        pids = await until(lambda: where.exists() and where.read_text().split())
    assert is_gone(int(pids[0]))
    await until(lambda: is_gone(int(pids[1])))
    with pytest.raises(Transient):
        await call


async def test_a_process_ends_with_its_executor_however_that_ended(workdir):
    """Killed without warning, an executor leaves no function behind, not even one in a tight loop."""
    where = workdir / "pids"
    script = f"""
        import asyncio
        from eventlog import payloads as p
        from executor.contract import TargetRequest, ExecutionEnvironment
        from executor.targets.python import PYTHON
        here = ExecutionEnvironment(workdir={str(workdir)!r})
        made = PYTHON.make({{"function": "functions:hangs"}}, here)
        asyncio.run(made.call(TargetRequest("b.1", "x", p.Case(id="c"), {{"where": {str(where)!r}}})))
    """
    executor = await asyncio.create_subprocess_exec(sys.executable, "-c", textwrap.dedent(script))
    pids = await until(lambda: where.exists() and where.read_text().split())
    executor.send_signal(signal.SIGKILL)
    await executor.wait()
    await until(partial(are_gone, pids))


@pytest.mark.parametrize(
    ("function", "output", "score", "passed"),
    [
        ("same", "abcd", 1.0, True),
        ("same", "abc", 0.0, False),
        ("part", "abc", 0.75, True),
        ("part", "a", 0.25, False),
        ("reported", "x", 0.2, True),
        ("only_passed", "x", 0.0, False),
    ],
)
async def test_a_function_is_an_evaluator(workdir, function, output, score, passed):
    """It returns a bool, a number or a dict; a number passes from the threshold on."""
    judged = await _judge(workdir, function, output)
    assert (judged.evaluator, judged.score, judged.passed) == ("mine", score, passed)


@pytest.mark.parametrize("function", ["silly", "nan", "broken"])
async def test_an_invalid_score_is_an_error(workdir, function):
    """An evaluator that fails does not score the answer."""
    with pytest.raises(Permanent):
        await _judge(workdir, function, "x")


async def _judge(workdir: Path, function: str, output: str) -> p.Score:
    spec = EvaluatorSpec(type="python", name="mine", options={"function": f"functions:{function}"})
    evaluator = PYTHON_EVALUATOR.make(spec.name, spec.options, environment(workdir))
    try:
        return await evaluator.score(ScoringRequest(p.Case(id="c", expected="abcd"), output, {}))
    finally:
        await evaluator.aclose()


@pytest.mark.parametrize("function", ["functions", "a b:c", "a:", ":b", "a:b()", "../a:b"])
def test_an_invalid_function_name_is_refused(function):
    """A typo is reported when the batch is submitted."""
    with pytest.raises(ValueError, match=r"function: write it as package\.module:function$"):
        PYTHON.check({"function": function})


def environment_of(folder: Path) -> str:
    """Make a virtual environment without Scoreline's packages; returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "only_there.py").write_text("ANSWER = 'from the environment'\n")
    return str(folder / "bin" / "python")


async def test_a_function_runs_under_the_interpreter_that_was_named(tmp_path: Path) -> None:
    """Its packages are found, Scoreline's are not, and the option overrides the submitter's interpreter."""
    python = environment_of(tmp_path / "env")
    (tmp_path / "app.py").write_text(
        "import only_there\n"
        "def answer(prompt):\n"
        "    try:\n"
        "        import executor\n"
        "    except ImportError:\n"
        "        return only_there.ANSWER\n"
    )
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for options, of_the_batch in (
        ({"interpreter": python}, "/nowhere/python"),
        ({"interpreter": "env/bin/python"}, ""),
        ({}, python),
    ):
        here = ExecutionEnvironment(workdir=str(tmp_path), environ=environ, interpreter=of_the_batch)
        function = PYTHON.make({"function": "app:answer", **options}, here)
        try:
            reply = await function.call(question())
        finally:
            await function.aclose()
        assert reply.answer.output == "from the environment"


@pytest.mark.parametrize("interpreter", ["no/such/python", "no-such-python"])
async def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, interpreter: str) -> None:
    """The error has its path, and the option to set."""
    (tmp_path / "app.py").write_text("def answer(prompt): return prompt\n")
    here = ExecutionEnvironment(workdir=str(tmp_path), environ=dict(os.environ))
    function = PYTHON.make({"function": "app:answer", "interpreter": interpreter}, here)
    with pytest.raises(Permanent, match=f"no interpreter .*{interpreter} here: set `interpreter`") as fault:
        await function.call(question())
    await function.aclose()
    assert fault.value.kind == "interpreter"


@pytest.mark.parametrize("name", ["answer", "aanswer"])
async def test_files_beside_a_function_shadow_only_what_it_imports(tmp_path: Path, name: str) -> None:
    """It finds its own `queue` and `executor`; the host and asyncio keep the standard library's."""
    for shadow in ("queue", "redis", "executor", "providers", "tokenize", "textwrap", "selectors", "child"):
        (tmp_path / f"{shadow}.py").write_text("MINE = True\n")
    (tmp_path / "app.py").write_text(
        "import asyncio, queue, redis, executor, providers\n"
        "def answer(prompt):\n"
        "    if prompt == 'raise': raise ValueError('as asked')\n"
        "    return [queue.MINE, redis.MINE, executor.MINE, providers.MINE]\n"
        "async def aanswer(prompt):\n"
        "    return await asyncio.to_thread(answer, prompt)\n"
    )
    here = ExecutionEnvironment(workdir=str(tmp_path), environ=dict(os.environ))
    function = PYTHON.make({"function": f"app:{name}"}, here)
    try:
        assert (await function.call(question())).answer.output == "[true,true,true,true]"
        with pytest.raises(Permanent, match="ValueError: as asked"):
            await function.call(question("raise"))
    finally:
        await function.aclose()


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


def test_the_host_needs_no_newer_python_than_3_8() -> None:
    """Its syntax is that of Python 3.8, and it imports the standard library only."""
    source = Path(function_server.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
