"""The report at the end of a run: the real command, with and without a terminal."""

import re
from pathlib import Path

from tests.acceptance.batch_commands import Folder
from tests.acceptance.terminal import on_terminal

SOME = """
def some(prompt):
    number = int(prompt)
    if number >= 24:
        raise ValueError(f"no answer to {prompt}")
    return prompt if number < 12 else f"<{prompt}>"

def none(prompt):
    raise ValueError("the endpoint is gone")
"""
"""Twelve right, twelve wrong, and all others raise."""
ESCAPE = "\x1b"
STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
RED = re.compile(r"\x1b\[[0-9;]*31m")


async def test_report_shows_rates_first_failures_and_dead_letters_by_reason(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Rate with interval, ten of twelve failures, reasons and commands; no colour in a pipe."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(30)
    folder.write("some.py", SOME)
    run = (
        "batch",
        "run",
        "--dataset",
        "cases.jsonl",
        "--target",
        "python:some:some",
        "--evaluator",
        "exact",
    )
    ran = await folder.run(*run, "--json", "--fail-fast-after", "0")
    output, batch_id = ran.stderr, ran.document["batch_id"]
    assert (ran.code, ESCAPE in output) == (3, False)
    assert "completed 24 of 30 (80.0%), 6 dead letters" in output
    [result] = ran.document["results"]
    assert (result["evaluator"], result["passed"], result["pass_rate"]) == ("exact", 12, 0.4)
    assert [round(end, 3) for end in result["pass_rate_interval"]] == [0.246, 0.577]
    assert "12 of 30  40.0%  24.6% … 57.7%" in output
    assert "12 answers did not pass, the first 10:" in output
    failure = r"input +12\n +expected 12\n +answer +<12>\n +reason +exact: expected '12', got '<12>'"
    assert re.search(failure, output)
    assert len(ran.document["failed_first"]) == 10
    assert f"scoreline batch export {batch_id} --failed -o failed.jsonl" in output
    assert "6 dead letters, not passed, by reason:" in output
    assert "6 x python: ValueError: no answer to 24" in output
    assert f"scoreline batch dlq {batch_id}" in output
    assert f"scoreline batch retry {batch_id}" in output
    assert "cost $0" in output
    assert (await folder.run("batch", "export", batch_id, "--failed", "-o", "failed.jsonl")).code == 0
    assert len((folder.root / "failed.jsonl").read_text().splitlines()) == 18


async def test_replay_shows_the_prompt_as_sent_and_the_whole_answer(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Rendered from the stored case and template: what the target got, and not cut however long."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.write("cases.jsonl", '{"input": "abc", "expected": "x", "colour": "red"}\n')
    folder.write(
        "long.py", "def long(prompt):\n    open('got', 'w').write(prompt)\n    return prompt + 'y' * 9000\n"
    )
    run = (
        "batch",
        "run",
        "--dataset",
        "cases.jsonl",
        "--target",
        "python:long:long",
        "--evaluator",
        "exact",
    )
    ran = await folder.run(*run, "--prompt", "{colour}: {input} {{}}", "--json")
    one = f"{ran.document['batch_id']}.00000001"
    sent = (folder.root / "got").read_text()
    assert sent == "red: abc {}"
    full = await folder.run("replay", one, "--full")
    assert f"\nPrompt as sent\n{sent}\n" in full.stdout
    assert f"\nAnswer\n{sent}{'y' * 9000}\n" in full.stdout
    assert "y" * 500 not in (await folder.run("replay", one)).stdout


async def test_total_failure_is_red_and_never_a_full_bar(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """On a terminal of 60 columns: 0 %, red, an empty bar, exit code 3; NO_COLOR takes the colour away."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(4)
    folder.write("some.py", SOME)
    run = (
        "batch",
        "run",
        "--dataset",
        "cases.jsonl",
        "--target",
        "python:some:none",
        "--evaluator",
        "exact",
    )
    code, output = on_terminal(*run, cwd=folder.root, environ=folder.environ, columns=60)
    assert code == 3
    assert RED.search(output)
    assert "completed 0 of 4 (0.0%)" in output
    output = output[output.index("evaluations accepted") :]
    assert "━" not in output, "nothing completed, so no part of the bar is full"
    assert "100.0%" not in output
    environ = folder.environ | {"NO_COLOR": "1"}
    status = ("batch", "status", folder.batch_id())
    code, plain = on_terminal(*status, cwd=folder.root, environ=environ, columns=60)
    assert (code, RED.search(plain)) == (3, None)
    assert "4 dead letters, not passed, by reason:" in plain
    lines = [line for line in STYLE.sub("", plain).splitlines() if "scoreline " not in line]
    assert [line for line in lines if len(line) > 60] == []


async def test_cancelled_batch_shows_how_many_ran(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """The command and the status count what ran and what was cancelled."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(4)
    run = (
        "batch",
        "run",
        "--dataset",
        "cases.jsonl",
        "--target",
        "python:app:echo",
        "--evaluator",
        "exact",
    )
    ran = await folder.run(*run, "--distributed", "--detach", "--json")
    batch_id = ran.document["batch_id"]
    cancelled = await folder.run("batch", "cancel", batch_id)
    assert f"{batch_id} is cancelled: 0 of 4 evaluations ran, 4 were cancelled" in cancelled.stderr
    status = await folder.run("batch", "status", batch_id)
    assert (status.code, "cancelled, completed 0 of 4 (0.0%), 4 cancelled" in status.stdout) == (4, True)
