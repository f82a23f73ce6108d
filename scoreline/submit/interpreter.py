"""Which Python runs the functions of a batch: the submitter's, which may not be Scoreline's."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

_TOOL_MARKS = ("pipx_metadata.json", "uv-receipt.toml")
"""Files by which pipx and uv mark an environment that holds one program and none of the user's packages."""


def submitters_interpreter(
    environ: Mapping[str, str], *, own: str = sys.executable, prefix: str = sys.prefix
) -> str:
    """Find the active virtual environment's Python; else, under pipx, the PATH's; else our own."""
    if active := environ.get("VIRTUAL_ENV"):
        python = Path(active, "bin", "python")
        if python.exists():
            return str(python)
    if any(Path(prefix, mark).exists() for mark in _TOOL_MARKS):
        return shutil.which("python3", path=environ.get("PATH")) or own
    return own
