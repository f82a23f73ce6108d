"""Embedded servers that linger: the next command finds them ready, and nothing stays behind."""

import json
from pathlib import Path

from tests.acceptance.batch_commands import Folder
from tests.waiting import until


async def test_servers_linger_for_the_next_command(tmp_path: Path) -> None:
    """One guardian serves both commands; a command without the setting ends it."""
    folder = Folder(tmp_path)
    status = folder.data / "servers" / "status.json"
    guardians = []
    for _ in range(2):
        listed = await folder.run("batch", "list", "--json", EVAL_SERVERS_LINGER="600")
        assert listed.code == 0, listed.stderr
        guardians.append(json.loads(status.read_text())["guardian"])
    assert guardians[0] == guardians[1]
    assert (await folder.run("batch", "list", "--json")).code == 0
    await until(lambda: not status.exists())
    await until(lambda: not Path(f"/proc/{guardians[0]}").exists())


async def test_a_time_to_linger_that_is_no_duration_is_refused(tmp_path: Path) -> None:
    """The message names the setting."""
    refused = await Folder(tmp_path).run("batch", "list", EVAL_SERVERS_LINGER="-1")
    assert refused.code == 1
    assert "EVAL_SERVERS_LINGER" in refused.stderr
