"""Programs as targets, through the command line: however a program treats its input, its output counts."""

import json
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder
from tests.integration.sandboxed import needs_sandbox

RUN = ("batch", "run", "--workers", "2", "--json")
CASES = 200
LARGE = "x" * 300_000
"""More than a pipe holds: a program that reads none of it leaves the writer with the rest."""

PROGRAMS = {
    "ignores its input": ("echo {n}", "{n}"),
    "closes its input, then works on": ("exec 0<&-; sleep 0.05; echo {n}", "{n}"),
    "reads one byte": ("head -c 1 >/dev/null; echo {n}", "{n}"),
    "reads half": ("head -c 150000 >/dev/null; echo {n}", "{n}"),
    "reads all": ("wc -c >/dev/null; echo {n}", "{n}"),
    "prints nothing": ("exit 0", ""),
    "closes its output": ("echo {n}; exec 1>&- 2>&-; sleep 0.05", "{n}"),
    "closes everything": ("echo {n}; exec 0<&- 1>&- 2>&-", "{n}"),
    "leaves a child that holds its input": ("sleep 5 & echo {n}", "{n}"),
    "prints before it reads": ("head -c 400000 /dev/zero | tr '\\0' y | tail -c 1; cat >/dev/null", "y"),
}
"""What a program does → shell script and the answer; `{n}` is the number of the case."""

SPEC = """
name: programs
dataset: cases.jsonl
prompts: ["{input}"]
targets: [{type: command, command: [sh, -c, "{script}"]}]
evaluators: [exact]
retries: 0
"""


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    return Folder(tmp_path, redis_url, postgres_url)


def corpus() -> str:
    """Each program in turn, with no input, with a short one and with a large one."""
    lines = []
    for n in range(CASES):
        script, expected = list(PROGRAMS.values())[n % len(PROGRAMS)]
        text = (LARGE if n < 2 * len(PROGRAMS) else f"question {n}") if n % 7 else ""
        case = {"input": text, "script": script.format(n=n), "expected": expected.format(n=n)}
        lines.append(json.dumps({"id": str(n), **case}))
    return "\n".join(lines)


@needs_sandbox
@pytest.mark.timeout(300)
async def test_a_program_may_treat_its_input_as_it_likes(folder: Folder) -> None:
    """200 programs that ignore, close, half-read or outlive their input all pass."""
    folder.write("cases.jsonl", corpus())
    folder.write("scoreline.yaml", SPEC)
    ran = await folder.run(*RUN)
    assert ran.stdout, ran.stderr
    assert ran.document["dead_letters"] == 0, ran.stderr
    assert (ran.code, ran.document["completed"], ran.document["passed"]) == (0, CASES, CASES), ran.stderr


@needs_sandbox
@pytest.mark.timeout(300)
async def test_echo_of_the_expected_value_always_passes(folder: Folder) -> None:
    """`echo` never reads its input and often has ended before that is written: 200 of 200 pass."""
    folder.cases(CASES)
    folder.write("scoreline.yaml", SPEC.replace('[sh, -c, "{script}"]', '[echo, "{expected}"]'))
    ran = await folder.run(*RUN)
    assert (ran.code, ran.document["passed"], ran.document["dead_letters"]) == (0, CASES, 0), ran.stderr
