"""The process that serves a function, under any interpreter."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from executor.contract import ExecutionEnvironment, Permanent
from executor.python_host import function_server
from executor.targets.python import PYTHON
from tests.integration.executor.python_functions import (
    question,
)


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
