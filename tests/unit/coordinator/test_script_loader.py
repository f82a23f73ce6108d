"""Scripts are loaded into Redis again after a loss, and through outages."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisUnavailable

from coordinator import script_loader
from coordinator.script_loader import keep_scripts_loaded
from eventlog.scripts import Script
from tests.waiting import until


class ScriptCache:
    """The scripts of a Redis that can be lost and unavailable."""

    def __init__(self) -> None:
        self.loaded: set[str] = set()
        self.checks = 0
        self.outages = 0

    async def script_exists(self, *digests: str) -> list[bool]:
        self.checks += 1
        if self.outages:
            self.outages -= 1
            raise RedisUnavailable("Connection refused")
        return [digest in self.loaded for digest in digests]

    async def script_load(self, source: str) -> None:
        self.loaded.add(source)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script whose digest is its source, and a loader that does not pause."""
    monkeypatch.setattr(script_loader, "INTERVAL", 0)
    (tmp_path / "one.lua").write_text("return 1")
    script = Script(tmp_path / "one.lua")
    script.sha = script.source
    return script


async def test_a_lost_script_is_loaded_again_after_an_outage(script):
    """An unavailable Redis ends nothing: the loader checks again."""
    redis: Any = ScriptCache()
    redis.outages = 3
    task = asyncio.create_task(keep_scripts_loaded(redis, [script]))
    try:
        await until(lambda: redis.loaded)
        assert redis.checks >= 4
        redis.loaded.clear()
        await until(lambda: redis.loaded)
    finally:
        task.cancel()
    assert redis.loaded == {script.source}


async def test_without_scripts_there_is_nothing_to_keep():
    """The loader returns and never calls Redis."""
    redis: Any = ScriptCache()
    await keep_scripts_loaded(redis, [])
    assert redis.checks == 0
