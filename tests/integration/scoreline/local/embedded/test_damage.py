"""Files of the embedded Valkey that it can't load are moved aside; no others are."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

from scoreline.local.embedded.continuity import EpochContinuity
from scoreline.local.embedded.damage import damage_in, take_notices
from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.local.embedded.server import Server
from scoreline.local.embedded.valkey import valkey, valkey_url

Damage = Callable[[Path], None]


@contextmanager
def running(home: Path) -> Iterator[Redis]:
    """Run a Valkey server on a data directory, and stop it cleanly."""
    server = Server(valkey(home, home))
    server.start()
    server.wait_ready()
    try:
        with Redis.from_url(valkey_url(home)) as redis:
            yield redis
    finally:
        server.request_stop()
        server.wait_stopped()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with entries in the base file and in the incremental one."""
    made = tmp_path_factory.mktemp("filled")
    with running(made) as redis:
        for number in range(200):
            redis.xadd(f"base{number % 7}", {"event": "x" * 50})
        redis.config_set("auto-aof-rewrite-percentage", 0)
        redis.bgrewriteaof()
        while redis.info("persistence")["aof_rewrite_in_progress"]:
            pass
        for number in range(200):
            redis.xadd(f"incremental{number % 7}", {"event": "y" * 50})
    return made


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(filled / "valkey", tmp_path / "valkey")
    return tmp_path


def file_of(log: Path, ending: str) -> Path:
    return max(log.glob(f"*{ending}"))


def cut(ending: str, part: float) -> Damage:
    def damage(log: Path) -> None:
        file = file_of(log, ending)
        os.truncate(file, int(file.stat().st_size * part))

    return damage


def overwritten(ending: str, junk: bytes) -> Damage:
    def damage(log: Path) -> None:
        file = file_of(log, ending)
        with file.open("r+b") as stream:
            stream.seek(file.stat().st_size // 2)
            stream.write(junk)

    return damage


def extended(ending: str, junk: bytes) -> Damage:
    def damage(log: Path) -> None:
        with file_of(log, ending).open("ab") as stream:
            stream.write(junk)

    return damage


def removed(ending: str) -> Damage:
    return lambda log: file_of(log, ending).unlink()


DAMAGES = {
    "NULs at the end": extended(".incr.aof", b"\0" * 4096),
    "garbage at the end": extended(".incr.aof", b"garbage\r\n"),
    "NULs inside": overwritten(".incr.aof", b"\0" * 512),
    "garbage inside": overwritten(".incr.aof", bytes(range(256))),
    "manifest cut": cut(".manifest", 0.4),
    "manifest empty": cut(".manifest", 0),
    "manifest garbage": overwritten(".manifest", b"\xff\0 junk\n"),
    "manifest missing": removed(".manifest"),
    "base cut": cut(".base.rdb", 0.5),
    "base garbage": overwritten(".base.rdb", bytes(range(256))),
    "base missing": removed(".base.rdb"),
    "increment missing": removed(".incr.aof"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files_are_moved_aside_and_the_server_starts(home: Path, name: str) -> None:
    """The server is empty and accepts writes; all files are kept; one notice names their directory."""
    log = home / "valkey" / "appendonlydir"
    DAMAGES[name](log)
    names = {file.name for file in log.iterdir()}
    with running(home) as redis:
        assert redis.dbsize() == 0
        redis.set("after", 1)
    [kept] = home.glob("valkey.damaged-*")
    assert {file.name for file in (kept / "appendonlydir").iterdir()} == names
    [notice] = take_notices(home)
    assert str(kept) in notice
    assert take_notices(home) == []
    with running(home) as redis:
        assert redis.get("after") == b"1"
    assert list(home.glob("valkey.damaged-*")) == [kept]


@pytest.mark.parametrize(
    "log",
    [
        "# Can't open the append-only file: Permission denied",
        "# Bad file format reading the append only file: No space left on device",
        "# Failed opening Unix socket: bind: Address already in use",
        "",
    ],
)
def test_other_failures_do_not_count_as_damage(log: str) -> None:
    """A full disk or a missing permission needs an operator: the files may be intact."""
    assert damage_in(log) == ""


def test_a_notice_holds_no_control_characters() -> None:
    """The server quotes its manifest, whose content is untrusted."""
    line = "1:M 18 Nov 2026 03:36:42.050 # Invalid AOF manifest file format \x1b[31m\x07" + "x" * 900
    assert damage_in(line).startswith("Invalid AOF manifest file format [31mx")
    assert len(damage_in(line)) <= 200


def test_a_log_that_was_changed_after_a_clean_stop_keeps_no_epoch(home: Path) -> None:
    """Cut to a length that loads, it lacks writes: the run id of the clean stop is not kept."""
    continuity = EpochContinuity(home)
    with running(home) as redis:
        redis.set("eval:{00}:epoch", "abc")
        continuity.server_started(valkey_url(home))
    continuity.server_stopped(0)
    EpochContinuity(home).server_starting()
    assert (home / "valkey.stopped").exists()
    cut(".incr.aof", 0.99)(home / "valkey" / "appendonlydir")
    EpochContinuity(home).server_starting()
    assert not (home / "valkey.stopped").exists()


def test_a_server_that_always_crashes_has_its_files_moved_aside_once(home: Path):
    """A crash on an empty directory is not caused by the files: the command fails at once with an error."""
    script = f"mkdir -p {home}/valkey/appendonlydir; : > {home}/valkey/appendonlydir/a.aof.manifest; "
    command = ["/bin/sh", "-c", f"{script} echo '1:M # valkey crashed by signal: 4'; exit 1"]
    server = Server(replace(valkey(home, home), command=command))
    server.start()
    with pytest.raises(EmbeddedServerError, match="ended while it was starting"):
        server.wait_ready()
    assert len(list(home.glob("valkey.damaged-*"))) == 1
    assert len(take_notices(home)) == 1
