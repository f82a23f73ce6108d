"""The command target: a program runs in the sandbox, and its outcome is an answer or an error."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from eventlog import payloads as p
from executor.contract import (
    CallFault,
    ExecutionEnvironment,
    Permanent,
    TargetReply,
    TargetRequest,
    Transient,
)
from executor.targets.command import COMMAND
from tests.integration.sandboxed import needs_sandbox

pytestmark = needs_sandbox

REPORTING = """
import json, os, socket
report = socket.socket(socket.AF_UNIX)
report.connect(os.environ["SCORELINE_REPORT"])
for line in json.loads(os.environ["LINES"]):
    report.sendall(json.dumps(line).encode() + b"\\n")
print("what it printed")
"""


def question(prompt: str = "two and two", *, seconds: float = 10, **fields: Any) -> TargetRequest:
    """Build a request for a case with these fields."""
    return TargetRequest("e-1", prompt, p.Case(id="c-1"), {"id": "c-1", **fields}, timeout=seconds)


async def ask(
    options: dict[str, Any], about: TargetRequest | None = None, workdir: Path | None = None
) -> TargetReply:
    """Call a command target once."""
    target = COMMAND.make(options, ExecutionEnvironment(workdir=str(workdir or "")))
    try:
        return await target.call(about or question())
    finally:
        await target.aclose()


async def test_the_prompt_goes_in_and_the_output_comes_back() -> None:
    """One newline at the end is no part of the answer."""
    reply = await ask({"command": "sh -c 'cat; echo; echo'"})
    assert reply.answer.output == "two and two\n"
    assert reply.exit_code == 0
    assert reply.answer.latency_ms > 0


async def test_data_never_becomes_a_second_argument() -> None:
    """The command is taken apart before it is filled in, whatever the data look like."""
    evil = "a b; echo 'pwned' $(id) {id} --flag"
    reply = await ask({"command": "printf '[%s]' {input} x{id}"}, question(input=evil))
    assert reply.answer.output == f"[{evil}][xc-1]"


async def test_files_are_seen_from_where_the_batch_was_submitted(tmp_path: Path) -> None:
    """A relative path is one below that directory."""
    (tmp_path / "solve.py").write_text("print(input().upper())")
    options = {"command": "python3 program.py", "files": {"program.py": "solve.py"}}
    reply = await ask(options, workdir=tmp_path)
    assert reply.answer.output == "TWO AND TWO"


@pytest.mark.parametrize("path", ["/", "/etc", "/tmp", "/proc/self/environ", "/dev/null", "no-such-file"])
async def test_some_files_are_never_mounted(path: str, tmp_path: Path) -> None:
    """Whole trees of the host, devices and what does not exist are refused, with a reason."""
    with pytest.raises(Permanent) as refused:
        await ask({"command": "true", "files": {"f": path}}, workdir=tmp_path)
    assert refused.value.kind == "files"


async def test_a_link_to_a_socket_is_not_given(tmp_path: Path) -> None:
    """The target of a link counts, not its name."""
    (tmp_path / "innocent").symlink_to(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(Permanent, match="neither a file nor a directory"):
            await ask({"command": "true", "files": {"f": "innocent"}}, workdir=tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read what the sandbox's user can't")
async def test_a_file_that_the_program_could_not_read_is_named(tmp_path: Path) -> None:
    """The error comes before the run, with the remedy, instead of an error inside the program."""
    (tmp_path / "private").write_text("x")
    (tmp_path / "private").chmod(0o600)
    with pytest.raises(Permanent, match="chmod"):
        await ask({"command": "true", "files": {"f": "private"}}, workdir=tmp_path)


@pytest.mark.parametrize(
    ("options", "fault", "kind", "words"),
    [
        ({"command": "sh -c 'echo why >&2; exit 4'"}, Permanent, "exit_code", "4: why"),
        ({"command": "sh -c 'exit 4'"}, Permanent, "exit_code", "the program ended with 4"),
        ({"command": "sleep 60"}, Transient, "timeout", "stopped after"),
        ({"command": "yes"}, Permanent, "output_limit", "512 kB"),
        ({"command": "echo {nothing}"}, Permanent, "template", "nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_each_failure_has_its_kind(
    options: dict[str, Any], fault: type[CallFault], kind: str, words: str
) -> None:
    """Time-outs are transient, all other failures are permanent."""
    with pytest.raises(fault) as raised:
        await ask(options, question(seconds=1))
    assert raised.value.kind == kind
    assert words in raised.value.message
    assert not raised.value.message.endswith(": ")


async def test_accepted_exit_codes_are_configurable() -> None:
    """The code is kept with the answer."""
    reply = await ask({"command": "sh -c 'echo partly; exit 2'", "ok_exit_codes": [0, 2]})
    assert (reply.answer.output, reply.exit_code) == ("partly", 2)


async def test_arguments_that_can_not_be_passed_are_refused() -> None:
    """They hold a NUL, or exceed the kernel's limit."""
    for text in ("a\0b", "x" * 200_000):
        with pytest.raises(Permanent, match="use stdin"):
            await ask({"command": "echo {input}"}, question(input=text))


async def test_a_reported_result_is_the_answer(tmp_path: Path) -> None:
    """It has its usage and its cost, and replaces the printed output."""
    usage = {"input_tokens": 5, "output_tokens": 2}
    lines: list[dict[str, Any]] = [
        {"type": "running", "process": "7"},
        {"type": "progress", "done": 1, "of": 2},
        {"type": "result", "output": "four", "usage": usage, "cost_usd": 0.25},
    ]
    answer = (await ask(_reporting(tmp_path, lines), workdir=tmp_path)).answer
    assert (answer.output, answer.usage.total, answer.cost_usd) == ("four", 7, 0.25)


async def test_a_forged_event_is_no_result(tmp_path: Path) -> None:
    """A program can send three kinds of reports about itself, and no others."""
    lines = [{"type": "completed", "evaluation_id": "e-2", "verdict": "passed"}]
    answer = (await ask(_reporting(tmp_path, lines), workdir=tmp_path)).answer
    assert answer.output == "what it printed"


def _reporting(tmp_path: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    (tmp_path / "report.py").write_text(REPORTING)
    return {
        "command": ["python3", "report.py"],
        "files": {"report.py": "report.py"},
        "env": {"LINES": json.dumps(lines)},
    }
