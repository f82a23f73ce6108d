"""The destination of an export: a file that is replaced atomically, or standard output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from scoreline.command_error import CommandError

STDOUT = Path("-")


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Yield a temporary file that is renamed to `path` once all of it is written."""
    if path == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = path.resolve()
    _check(path, force=force)
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device is written in place: a rename would replace it.
            with path.open("wb") as device:
                yield device
            return
        with _renamed(path, force=force) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{path} can't be written: {error.strerror or error}.") from error


@contextmanager
def _renamed(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check(path, force=force)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _check(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise CommandError(f"{path} is a directory. Give the name of a file.")
    if path.is_file() and not force:
        raise CommandError(f"{path} exists. To replace it: --force")
