"""Options of everything that runs programs: what makes no sense is refused where the batch is submitted."""

from typing import Any

import pytest

from executor.evaluators.code import CODE
from executor.targets.command import COMMAND
from executor.targets.container import CONTAINER


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs the option 'command'"),
        ({"command": ""}, "names no program"),
        ({"command": []}, "command"),
        ({"command": "echo 'open"}, "can't be taken apart"),
        ({"command": "{input} x"}, "can't be a placeholder"),
        ({"command": "x", "comand": 1}, "did you mean 'command'"),
        ({"command": "x", "env": {"KEY": "$OPENAI_API_KEY"}}, "names a variable of the executor"),
        ({"command": "x", "env": {"KEY": "${HOME}/x"}}, "names a variable of the executor"),
        ({"command": "x", "env": {"A=B": "x"}}, "env"),
        ({"command": "x", "env": {"SCORELINE_REPORT": "x"}}, "report socket"),
        ({"command": "x", "files": {"../x": "y"}}, "not a name below"),
        ({"command": "x", "files": {"/x": "y"}}, "not a name below"),
        ({"command": "x", "files": {"": "y"}}, "not a name below"),
        ({"command": "x", "limits": {"memory": 5}}, "limits.memory"),
        ({"command": "x", "limits": {"processes": 0}}, "limits.processes"),
        ({"command": "x", "ok_exit_codes": [300]}, "ok_exit_codes"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    """The error names the option."""
    with pytest.raises(ValueError, match="the command target") as refused:
        COMMAND.check(options)
    assert words in str(refused.value)


def test_a_command_may_be_a_line_or_a_list() -> None:
    """Both are the same to it."""
    COMMAND.check({"command": "python3 solve.py {input}"})
    COMMAND.check({"command": ["python3", "solve.py", "{input}"], "limits": {"memory_mb": 64}})


@pytest.mark.parametrize("options", [{}, {"image": ""}, {"image": "a b"}, {"image": "x", "cpus": 0}])
def test_a_container_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    """It needs an image by name, and some of a processor."""
    with pytest.raises(ValueError, match="the container target"):
        CONTAINER.check(options)


@pytest.mark.parametrize("options", [{}, {"program": ""}, {"program": "x", "timeout": 0}])
def test_code_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    """It needs a program, and time to run it."""
    with pytest.raises(ValueError, match="the code evaluator"):
        CODE.check(options)


def test_a_program_names_the_fields_it_wants() -> None:
    """All but the output, which every case will have."""
    options: dict[str, Any] = {"program": "{prompt}{output}\n{test}\ncheck({entry_point})\n"}
    assert CODE.placeholders(options) == {"prompt", "test", "entry_point"}
    assert not CODE.needs_expected
