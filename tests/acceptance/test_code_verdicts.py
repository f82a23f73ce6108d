"""The `code` evaluator, through the command line: only a program that ran to its end passes."""

import json
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder
from tests.integration.early_ends import EARLY_ENDS
from tests.integration.sandboxed import needs_sandbox

RIGHT = {
    "right": "def solve():\n    return 42",
    "right, with a silent standard output": "import io, sys\nsys.stdout = io.StringIO()\n"
    "def solve():\n    return 42",
    "right, with a thread and a subprocess": "import subprocess, threading\n"
    "threading.Thread(target=print).start()\nsubprocess.run(['true'], check=True)\n"
    "def solve():\n    return 42",
    "right, and run as the main module": "import __main__\nassert __name__ == '__main__'\n"
    "assert __main__.__dict__ is globals()\ndef solve():\n    return 42",
}
SPEC = r"""
name: verdicts
dataset: cases.jsonl
target: recorded:answers.jsonl
evaluator: {type: code, program: "{output}\nassert solve() == 42\n", timeout: 10}
"""


@needs_sandbox
@pytest.mark.timeout(180)
async def test_a_program_that_ends_early_does_not_pass(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Of answers that exit, exec, fork, raise or forge before the tests have ended, none passes."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    answers = EARLY_ENDS | RIGHT
    folder.write("cases.jsonl", "".join(json.dumps({"id": each, "input": ""}) + "\n" for each in answers))
    folder.write(
        "answers.jsonl",
        "".join(json.dumps({"id": each, "output": text}) + "\n" for each, text in answers.items()),
    )
    folder.write("scoreline.yaml", SPEC)
    ran = await folder.run("batch", "run", "--workers", "1", "--json")
    assert ran.stdout, ran.stderr
    assert (ran.document["completed"], ran.document["dead_letters"]) == (len(answers), 0), ran.stderr
    exported = await folder.run("batch", "export", ran.document["batch_id"], "-o", "-", "--format", "jsonl")
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    passed = {row["case_id"] for row in rows if row["passed"]}
    assert passed == set(RIGHT), [
        (row["case_id"], row["reason"]) for row in rows if row["case_id"] in RIGHT
    ]
