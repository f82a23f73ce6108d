"""Which Redis is unfit for use, and the line that reports it."""

import pytest
from redis.asyncio import Redis

from scoreline.servers.redis_check import check_redis
from tests.integration.scoreline.servers.test_availability import complaint, listener


def info(version: str, role: str = "master") -> bytes:
    body = f"redis_version:{version}\r\nrole:{role}\r\n"
    return f"${len(body)}\r\n{body}\r\n".encode()


async def test_a_wrong_login_is_not_reported_as_an_outage(redis_url: str) -> None:
    """The error names refused credentials as the reason, and never prints them."""
    async with Redis.from_url(redis_url) as client:
        await client.acl_setuser("guest", enabled=True, passwords=["+right"], commands=["+@all"])
        try:
            message = await complaint(check_redis, f"{redis_url}?username=guest&password=wrong")
        finally:
            await client.acl_deluser("guest")
    assert "does not accept the login" in message
    assert "wrong" not in message


async def test_user_without_info_gets_the_right_to_grant(redis_url: str) -> None:
    """The error names the right that the login lacks."""
    async with Redis.from_url(redis_url) as client:
        await client.acl_setuser("guest", enabled=True, passwords=["+right"], commands=["-info"])
        try:
            message = await complaint(check_redis, f"{redis_url}?username=guest&password=right")
        finally:
            await client.acl_deluser("guest")
    assert "Grant it +info" in message


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (info("5.0.14"), "is too old (version 5.0.14)"),
        (info("6.0.9"), "is too old (version 6.0.9)"),
        (info("7.2.4", role="slave"), "is a read-only replica"),
        (b"-LOADING the dataset\r\n", "is still loading its data"),
        (b"-NOAUTH Authentication required.\r\n", "does not accept the login"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not answer as a Redis does"),
    ],
)
async def test_unfit_redis_is_distinguished(reply: bytes, problem: str) -> None:
    """Too old, a replica, loading, locked or not Redis at all: each has its own message."""
    async with listener(reply) as port:
        assert problem in await complaint(check_redis, f"redis://127.0.0.1:{port}")
