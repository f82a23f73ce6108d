"""`scoreline sandbox check`: the cgroup of the settings, and the flags."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from scoreline.cli.sandbox import app
from scoreline.reports import sandbox_report


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        ([], {}, ("", False, False)),
        (["--quick"], {"EVAL_WORKER_CGROUP": "/sys/fs/cgroup/eval"}, ("/sys/fs/cgroup/eval", True, False)),
        (["--json"], {}, ("", False, True)),
    ],
)
def test_the_sandbox_of_executors_is_checked(
    argv: list[str],
    environ: dict[str, str],
    expected: tuple[str, bool, bool],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    """In the cgroup that executors use, or in none."""
    received: list[tuple[str, bool, bool]] = []

    def report(cgroup: str, *, as_json: bool, quick: bool) -> None:
        received.append((cgroup, quick, as_json))

    monkeypatch.setattr(sandbox_report, "report_sandbox", report)
    monkeypatch.delenv("EVAL_WORKER_CGROUP", raising=False)
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, ["check", *argv], env=environ)
    assert (ran.exit_code, received) == (0, [expected]), ran.output
