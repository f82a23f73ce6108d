"""How other programs run the jobs of `bench.start`: the same cases, the same Python function."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FUNCTION = """def answer(prompt):
    return str(prompt)


def call_api(prompt, options, context):
    return {"output": answer(prompt)}
"""
"""`answer` for Scoreline and Inspect AI, `call_api` for promptfoo."""
TASK = """from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import exact
from inspect_ai.solver import solver

from target import answer


@solver
def calls_function():
    async def solve(state, generate):
        state.output.completion = answer(state.input_text)
        return state

    return solve


@task
def cases(dataset):
    def sample(row):
        return Sample(input=row["input"], target=row["expected"])

    return Task(dataset=json_dataset(dataset, sample), solver=calls_function(), scorer=exact())
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program."""

    name: str
    program: str

    def argv(self, job: str, folder: Path) -> list[str]:
        """Return the command that runs a job, whose files are written first."""
        if self.name == "promptfoo":
            config = folder / f"{job}.promptfoo.json"
            config.write_text(json.dumps(_promptfoo_config(job, folder)), encoding="utf-8")
            return [
                self.program,
                "eval",
                "-c",
                config.name,
                "--no-cache",
                "--no-progress-bar",
                "--no-table",
            ]
        (folder / "task.py").write_text(TASK, encoding="utf-8")
        flags = ("--model", "mockllm/model", "--display", "none", "--log-dir", str(folder / "logs"))
        return [self.program, "eval", "task.py", "-T", f"dataset={job}.jsonl", *flags]

    def environ(self, folder: Path) -> Mapping[str, str]:
        """Return its variables: no telemetry, no look for updates, files in the job's folder."""
        return {
            "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"),
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
        }


def _promptfoo_config(job: str, folder: Path) -> dict[str, object]:
    cases = [
        json.loads(line) for line in (folder / f"{job}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return {
        "prompts": ["{{question}}"],
        "providers": ["file://target.py"],
        "tests": [
            {"vars": {"question": case["input"]}, "assert": [{"type": "equals", "value": case["expected"]}]}
            for case in cases
        ],
    }


def promptfoo(program: str | None) -> Peer | None:
    """Return promptfoo, if it is installed."""
    return Peer("promptfoo", program) if program else None


def inspect_ai(program: str | None) -> Peer | None:
    """Return Inspect AI, if it is installed."""
    return Peer("inspect_ai", program) if program else None


def version_of(program: str) -> str:
    """Return what a program prints as its version."""
    found = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return found.stdout.strip().splitlines()[-1] if found.stdout.strip() else "unknown"
