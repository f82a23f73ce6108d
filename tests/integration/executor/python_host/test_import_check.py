"""Functions that cannot be imported."""

import pytest

from executor.contract import Permanent, Transient
from tests.integration.executor.python_functions import (
    answer,
    question,
    target,
)

SPRAYS = """
import os
for fd in range(3, 64):
    try:
        os.write(fd, b"garbage" * 9)
    except OSError:
        pass
"""


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
