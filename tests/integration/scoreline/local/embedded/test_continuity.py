"""The epochs of the embedded server: they survive a clean stop, and nothing else."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from eventlog.redis_streams import RedisEventLog
from scoreline.local.embedded import embedded_servers
from scoreline.local.embedded.continuity import EpochContinuity, bound
from tests.waiting import until


async def epochs_of(redis_url: str) -> list[str]:
    """Return the epoch of each shard, or nothing while the server does not answer."""
    log = RedisEventLog.from_url(redis_url, shards=2)
    try:
        return await log.epochs()
    finally:
        await log.aclose()


def test_epochs_survive_every_clean_stop(tmp_path: Path) -> None:
    """A server that flushed its whole append-only file has lost nothing, however often it is started."""
    found = []
    for _ in range(3):
        with embedded_servers(tmp_path) as servers:
            found.append(asyncio.run(epochs_of(servers.redis_url)))
    assert found == [found[0]] * 3


def test_epochs_change_when_the_server_is_killed(tmp_path: Path) -> None:
    """Its last writes may be lost, with the claims in them, even if an earlier stop was clean."""
    with embedded_servers(tmp_path) as servers:
        asyncio.run(epochs_of(servers.redis_url))
    with embedded_servers(tmp_path) as servers:
        before = asyncio.run(epochs_of(servers.redis_url))
        pid_file = tmp_path / "servers" / "valkey.pid"
        killed = pid_file.read_text()
        os.kill(int(killed), signal.SIGKILL)
        asyncio.run(until(lambda: pid_file.exists() and pid_file.read_text() not in {"", killed}, 60))
        with embedded_servers(tmp_path) as again:
            after = asyncio.run(epochs_of(again.redis_url))
    assert not set(before) & set(after)
    with embedded_servers(tmp_path) as servers:
        assert asyncio.run(epochs_of(servers.redis_url)) == after


@pytest.mark.parametrize("exit_code", [None, 1, -9])
def test_any_other_end_leaves_no_record(tmp_path: Path, exit_code: int | None) -> None:
    """Killed, failed, or with an unknown end: the next server starts new epochs."""
    with embedded_servers(tmp_path / "s") as servers:
        continuity = EpochContinuity(tmp_path)
        continuity.server_started(servers.redis_url)
        continuity.server_stopped(exit_code)
    assert not (tmp_path / "valkey.stopped").exists()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("abc", "abc/new/last", id="made by the last server"),
        pytest.param("abc/last/first", "abc/new/first", id="bound to the last server"),
        pytest.param("abc/older/first", "abc/new/last", id="bound to one that was killed since"),
    ],
)
def test_a_binding_keeps_the_epoch_that_was_in_force(value: str, kept: str) -> None:
    """The second half is the run id of the last server, or the one that this server had kept."""
    assert bound(value, last="last", run_id="new") == kept
