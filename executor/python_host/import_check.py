"""Whether functions can be imported under an interpreter, found out in a process that calls none."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from eventlog.redaction import redact_tail
from executor.python_host.host import CHILD, interpreter_path

TAIL = 500


class InterpreterUnusable(Exception):  # noqa: N818 - what is wrong, to the user
    """The interpreter can't run the host of functions."""


class ImportTimeout(Exception):  # noqa: N818 - what happened
    """The imports took longer than the check may."""


def broken_imports(
    functions: Sequence[str], *, interpreter: str, workdir: str, environ: Mapping[str, str], seconds: float
) -> dict[str, str]:
    """Import functions; returns the error of each. Raises `InterpreterUnusable`, `ImportTimeout`."""
    python = interpreter_path(interpreter, workdir=workdir, environ=environ)
    try:
        process = subprocess.Popen(  # noqa: S603 - the interpreter that will run the batch
            [python, str(CHILD), "--check", workdir, *functions],
            cwd=workdir or None,
            env={name: value for name, value in environ.items() if not name.startswith("EVAL_")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise InterpreterUnusable(f"{python} can't be run: {error.strerror}") from None
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ImportTimeout from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    try:
        found: dict[str, str] = json.loads(stdout)
    except ValueError:
        error_text = redact_tail(stderr.decode(errors="replace").strip(), TAIL)
        raise InterpreterUnusable(f"{python} ended with code {process.returncode}: {error_text}") from None
    return found
