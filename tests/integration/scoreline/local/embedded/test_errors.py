"""Errors of embedded servers: what failed and the remedy."""

import errno
from pathlib import Path

import pytest

from scoreline.local.embedded import EmbeddedServerError, embedded_servers
from scoreline.local.embedded.errors import file_error
from tests.integration.scoreline.local.embedded.users import (
    at_rest,
    home,
)
from tests.waiting import until


async def test_data_of_another_postgres_version_is_refused_and_kept(tmp_path: Path) -> None:
    """Old data is never touched: the error names both versions and the remedy."""
    data = home(tmp_path) / "postgres"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("13\n")
    with (
        pytest.raises(EmbeddedServerError, match="is of PostgreSQL 13") as refused,
        embedded_servers(tmp_path),
    ):
        pass
    assert "pg_dump" in refused.value.advice
    assert (data / "PG_VERSION").read_text() == "13\n"
    await until(lambda: at_rest(tmp_path))


async def test_broken_data_gives_an_error_with_the_last_log_lines(tmp_path: Path) -> None:
    """The error names the server, its last log lines and the log file."""
    data = home(tmp_path) / "postgres"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("18\n")
    with pytest.raises(EmbeddedServerError) as broken, embedded_servers(tmp_path):
        pass
    assert broken.value.server == "PostgreSQL"
    assert "postgresql.conf" in broken.value.log
    assert "What to do:" in str(broken.value)
    await until(lambda: at_rest(tmp_path))


def test_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """A root that is not a plain directory owned by the user could be a trap, and is not used."""
    (tmp_path / "elsewhere").mkdir()
    home(tmp_path).symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(EmbeddedServerError, match="not a directory of this user"),
        embedded_servers(tmp_path),
    ):
        pass


def test_root_that_cannot_be_made_gives_a_clear_error(tmp_path: Path) -> None:
    """A file where the directory should be is a clear error."""
    (tmp_path / "taken").touch()
    with (
        pytest.raises(EmbeddedServerError, match="cannot use the data directory"),
        embedded_servers(tmp_path / "taken"),
    ):
        pass


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.ENOSPC, "full"), "free some disk space for /proc/nowhere"),
        (OSError(errno.EDQUOT, "full"), "free some disk space for /proc/nowhere"),
        (FileNotFoundError(errno.ENOENT, "gone"), "set EVAL_DATA_DIR to another directory"),
    ],
)
def test_the_advice_to_free_disk_space_is_given_only_where_it_is_missing(
    error: OSError, advice: str
) -> None:
    """A file system that can't hold files at all has no free space, and none would help."""
    assert advice in file_error(Path("/proc/nowhere"), error).advice
