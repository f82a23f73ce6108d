"""The log of a run's processes: old logs are removed, and the last error is found."""

import json
import os
import time
from pathlib import Path

import pytest

from scoreline.local.process_log import KEPT, TAIL, last_error, log_of


def logged(level: str, **fields: object) -> str:
    """Write a line as the logger of a process does."""
    return json.dumps({"level": level, **fields})


def written(folder: Path, *lines: str) -> Path:
    """Write a log."""
    path = folder / "process.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_only_logs_older_than_a_month_are_removed(tmp_path: Path):
    """The folder is the owner's alone, and so are logs of earlier versions."""
    old, recent = log_of(tmp_path, "old"), log_of(tmp_path, "recent")
    for path, age in ((old, KEPT + 3_600), (recent, KEPT - 3_600)):
        path.touch(mode=0o644)
        os.utime(path, (time.time() - age,) * 2)
    log_of(tmp_path, "new")
    assert (old.exists(), recent.exists()) == (False, True)
    assert (recent.stat().st_mode & 0o777, recent.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_plain_text_comes_before_log_lines(tmp_path: Path):
    """A process that can't start prints its error, or a traceback that ends with it."""
    lines = ("Traceback:", "  at line 1", "OSError: no", "", logged("error", message="later"))
    assert last_error(written(tmp_path, *lines), since=0) == "OSError: no"


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (
            [
                logged("error", message="first"),
                logged("critical", message="last"),
                logged("info", message="x"),
            ],
            "last",
        ),
        ([logged("error", message="m", exception="Traceback\nValueError: bad\n")], "ValueError: bad"),
        ([logged("error", message="whole"), '{"level": "error", "mess'], "whole"),
        ([logged("error", message="named"), logged("error", message="")], "named"),
        ([logged("warning", message="slow")], ""),
        ([], ""),
    ],
)
def test_the_last_error_of_log_lines_is_found(tmp_path: Path, lines: list[str], error: str):
    """An exception by its last line; a line that was cut off and one without text are skipped."""
    assert last_error(written(tmp_path, *lines), since=0) == error


def test_only_what_was_written_since_counts(tmp_path: Path):
    """An earlier process of the same log is not blamed, and of a long log only the end is read."""
    path = written(tmp_path, "before")
    assert last_error(path, since=path.stat().st_size) == ""
    assert last_error(path, since=0) == "before"
    path = written(tmp_path, "before", *[logged("info", message="x" * 1_000)] * (TAIL // 1_000))
    assert last_error(path, since=0) == ""
    assert last_error(tmp_path / "missing.log", since=0) == ""
