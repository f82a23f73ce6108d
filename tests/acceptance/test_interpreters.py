"""Python functions run in the user's interpreter, through the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder

RUN = ("batch", "run", "--workers", "1", "--json", "--dataset", "cases.jsonl", "--evaluator", "exact")
APP = """
import only_there

def answer(prompt):
    return only_there.same(prompt)

def judge(output):
    return only_there.same(output) == output

def nothing(prompt):
    only_there.same(prompt)
"""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    """A folder whose code needs a package that only a virtual environment has."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    [packages] = (tmp_path / "env").glob("lib/python*/site-packages")
    (packages / "only_there.py").write_text("def same(text): return text\n")
    folder.write("mine.py", APP)
    folder.cases(4)
    return folder


async def test_functions_run_in_the_active_virtual_environment(folder: Folder, tmp_path: Path) -> None:
    """Target and evaluator find its packages, though Scoreline is installed elsewhere; it is on record."""
    folder.environ["VIRTUAL_ENV"] = str(tmp_path / "env")
    ran = await folder.run(*RUN, "--target", "python:mine:answer", "--evaluator", "python:mine:judge")
    assert (ran.code, ran.document["passed"], ran.document["dead_letters"]) == (0, 4, 0), ran.stderr
    [(spec,)] = folder.ask("SELECT spec::text FROM batches")
    assert json.loads(spec)["interpreter"] == str(tmp_path / "env" / "bin" / "python")


async def test_a_function_that_returns_none_has_no_answer(folder: Folder, tmp_path: Path) -> None:
    """It is a dead letter with that reason, and not the answer `null`."""
    spec = {"type": "python", "function": "mine:nothing", "interpreter": str(tmp_path / "env/bin/python")}
    folder.write("scoreline.yaml", json.dumps({"dataset": "cases.jsonl", "target": spec}))
    ran = await folder.run("batch", "run", "--workers", "1", "--json")
    assert (ran.code, ran.document["dead_letters"]) == (3, 4), ran.stderr
    letters = await folder.run("batch", "dlq", ran.document["batch_id"], "--json")
    letter = json.loads(letters.stdout.splitlines()[0])
    assert letter["kind"] == "no_answer"
    assert letter["message"].startswith("mine:nothing returned None")
