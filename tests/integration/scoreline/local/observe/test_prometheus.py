"""`scoreline observe` without Prometheus."""

from pathlib import Path

import pytest

from scoreline.command_error import CommandError
from scoreline.local.observe.run import run_observe


def test_without_prometheus_the_error_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error comes before anything is started."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="apt install prometheus"):
        run_observe(as_json=False, keep=False)
    assert list(tmp_path.iterdir()) == []
