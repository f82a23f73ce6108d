"""Server specs for tests: programs of a shell instead of servers."""

import signal
from collections.abc import Callable
from pathlib import Path

from scoreline.local.embedded.server_spec import ServerSpec


def shell(
    home: Path,
    script: str,
    *,
    answers: Callable[[], bool] = bool,
    recover: Callable[[str], bool] | None = None,
) -> ServerSpec:
    """Describe a server that is a shell script."""
    return ServerSpec(
        name="Fake",
        home=home,
        data=home / "data",
        pid_file=home / "fake.pid",
        command=["/bin/sh", "-c", script],
        stop_signal=signal.SIGTERM,
        prepare=lambda _: None,
        answers=answers,
        recover=recover or (lambda _: False),
    )
