"""Children report that they have started to the manager that waits for them."""

import os
import sys
from pathlib import Path

from scoreline.local.processes import process_manager
from tests.waiting import until


async def test_a_child_reports_that_it_has_started(tmp_path: Path) -> None:
    """It finds the descriptor in its environment, and passes it to none of its own children."""
    log = tmp_path / "log"
    ready = (
        "import os, sys; from scoreline.local.readiness import READY_FD, ready_report; ready_report()(); "
        "open(sys.argv[1], 'w').write(str(READY_FD in os.environ)); sys.stdin.read()"
    )
    async with process_manager(os.environ) as manager:
        child = manager.keep("executor", [sys.executable, "-c", ready, str(log)])
        await until(log.exists, 60)
        await until(log.read_text, 60)
        assert (child.has_reported_ready(), log.read_text()) == (True, "False")
