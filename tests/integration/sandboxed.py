"""Programs for the sandbox, and a mark for tests that need one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from executor.sandbox.job import Job, Limits
from executor.sandbox.probe import probe

needs_sandbox = pytest.mark.skipif(probe().footing is None, reason=probe().trouble or "there is a sandbox")


def python(
    program: str,
    *,
    seconds: float = 10,
    limits: Limits | None = None,
    files: Mapping[str, Path] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Job:
    """A Python program as a job; `facts` are a dict named `host` to it."""
    told = f"host = __import__('json').loads({json.dumps(facts or {})!r})\n"
    return Job(
        ("python3", "-I", "-S", "-B", "program.py"),
        seconds,
        texts={"program.py": (told + program).encode()},
        limits=limits or Limits(),
        files=files or {},
    )
