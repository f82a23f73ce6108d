"""The guardian's client of the embedded Valkey server."""

from pathlib import Path

import pytest

from scoreline.local.embedded import embedded_servers
from scoreline.local.embedded.valkey_client import ValkeyClient, ValkeyError


def test_commands_are_answered_in_full(tmp_path: Path) -> None:
    """Keys are found in several rounds of SCAN, and an error of the server is raised."""
    with embedded_servers(tmp_path) as servers, ValkeyClient(servers.redis_url) as client:
        client.call(b"MSET", *(word for n in range(3_000) for word in (b"other:%d" % n, b"x")))
        client.call(b"MSET", b"eval:{1}:epoch", b"a", b"eval:{2}:epoch", b"b")
        assert set(client.keys("eval:{*}:epoch")) == {b"eval:{1}:epoch", b"eval:{2}:epoch"}
        assert (len(client.run_id()), client.call(b"GET", b"none")) == (40, None)
        with pytest.raises(ValkeyError, match="WRONGTYPE"):
            client.call(b"LPUSH", b"other:1", b"x")


def test_a_server_that_is_gone_is_an_error_of_the_system(tmp_path: Path) -> None:
    """The guardian treats it as one that does not run."""
    with pytest.raises(OSError, match="No such file"), ValkeyClient(f"unix://{tmp_path}/none.sock"):
        pass
