"""Python functions that write to or close every descriptor, through the command line."""

import json
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder
from tests.integration.descriptor_abuse import ABUSES, APP

GOOD = [f"question {n}" for n in range(60)]
SPEC = """
name: descriptors
dataset: cases.jsonl
targets: [{type: python, function: "abuse:plain"}, {type: python, function: "abuse:concurrent"}]
evaluator: exact
retries: 0
timeout: 30
"""


@pytest.mark.timeout(180)
async def test_a_function_that_abuses_its_descriptors_loses_only_its_own_case(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Without a single retry every other case keeps its answer, and none has a forged one."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    prompts = [*GOOD]
    for position, abuse in enumerate(ABUSES):
        prompts.insert(position * 5 + 3, abuse)
    folder.write("abuse.py", APP)
    cases = ({"id": each, "input": each, "expected": each} for each in prompts)
    folder.write("cases.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
    folder.write("scoreline.yaml", SPEC)
    ran = await folder.run("batch", "run", "--workers", "1", "--concurrency", "8", "--json")
    exported = await folder.run("batch", "export", folder.batch_id(), "-o", "-", "--format", "jsonl")
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    assert len(rows) == 2 * len(prompts), ran.stderr
    lost = [(row["target"], row["case_id"], row.get("error")) for row in rows if not row["passed"]]
    innocent = [each for each in lost if each[1] not in ABUSES]
    assert innocent == []
    assert not any("forged" in str(row.get("output")) for row in rows)
