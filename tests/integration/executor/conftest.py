"""Functions of a user in a folder of their own."""

import textwrap
from pathlib import Path

import pytest

from tests.integration.executor.python_functions import (
    FUNCTIONS,
)


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "functions.py").write_text(textwrap.dedent(FUNCTIONS))
    return tmp_path
