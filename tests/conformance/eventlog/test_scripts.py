"""Lua scripts on a real Redis: loaded when missing, run in one round trip, errors with script and keys."""

import pytest

from eventlog import redis_streams
from eventlog.log import Append
from eventlog.redis_errors import RedisCommandError
from eventlog.redis_streams import connect
from eventlog.scripts import Script, ScriptsMissing, load_missing
from tests.builders import EVALUATION, event, history, records
from tests.conformance.eventlog.requests import DUPLICATE, OK, append


@pytest.fixture
def echo(tmp_path):
    """A script that returns its first argument."""
    (tmp_path / "echo.lua").write_text("return ARGV[1]")
    return Script(tmp_path / "echo.lua")


async def test_a_lost_script_is_loaded_again(redis_form):
    """SCRIPT FLUSH, or a restart, costs one round trip."""
    await append(redis_form, event("queued"))
    await redis_form.redis.script_flush()
    assert await append(redis_form, *history("queued provisioning")) == [DUPLICATE, OK]


async def test_an_error_in_a_script_surfaces_with_its_name_and_keys(redis_form, monkeypatch, tmp_path):
    """A defect in Lua is no outage: it is raised once and not retried."""
    (tmp_path / "broken.lua").write_text("return nil .. KEYS[1]")
    monkeypatch.setattr(redis_streams, "_APPEND", Script(tmp_path / "broken.lua"))
    with pytest.raises(RedisCommandError, match=r"(?s)broken.lua, keys eval:.*same release"):
        await redis_form.log.append([Append(EVALUATION, records(history("queued")), epoch="")])


async def test_replies_are_in_the_order_of_the_calls(redis_form, echo):
    """Many calls take one round trip, and none at all is no error."""
    calls = [([f"eval:{{00}}:{word}"], [word]) for word in ("first", "second", "third")]
    assert await echo.run(redis_form.redis, calls) == [b"first", b"second", b"third"]
    assert await echo.run(redis_form.redis, []) == []


async def test_only_missing_scripts_are_loaded(redis_form, echo, tmp_path):
    """The returned count is that of the loaded scripts."""
    (tmp_path / "other.lua").write_text("return 'other'")
    other = Script(tmp_path / "other.lua")
    await redis_form.redis.script_flush()
    await redis_form.redis.script_load(echo.source)
    assert await load_missing(redis_form.redis, [echo, other]) == 1
    assert await load_missing(redis_form.redis, [echo, other]) == 0


async def test_a_user_that_may_not_load_scripts_waits_for_a_coordinator(redis_form, redis_url, echo):
    """An executor's user calls scripts by digest; a lost script is an outage to it, not a defect."""
    await redis_form.redis.script_flush()
    rights = ("on", ">secret", "~*", "+@all", "-script")
    await redis_form.redis.execute_command("ACL SETUSER", "denied", *rights)
    client = connect(redis_url.replace("unix://", "unix://denied:secret@"))
    try:
        with pytest.raises(ScriptsMissing, match="a coordinator loads them again"):
            await echo.run(client, [(["eval:{00}:key"], ["x"])])
        await load_missing(redis_form.redis, [echo])
        assert await echo.run(client, [(["eval:{00}:key"], ["x"])]) == [b"x"]
    finally:
        await client.aclose()
        await redis_form.redis.execute_command("ACL DELUSER", "denied")
