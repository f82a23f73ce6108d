"""Clients of the providers' SDKs: no retries, a connection for every slot, no foreign variables.

The SDKs take a second to import, so they are imported when a client is created. They are an optional extra:
scoring recorded answers does not need them.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import httpx2

from providers.bounded_replies import bounds
from providers.endpoint import ModelEndpoint
from providers.extras import install_command
from providers.table import Provider, Sdk

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

CONNECT_TIMEOUT = 10.0
LONGEST_CALL = 600.0
NO_KEY = "none"
"""The key sent to endpoints that need none; the SDK requires one."""


class MissingSdk(ValueError):  # noqa: N818 - names the missing package
    """A provider's SDK is not installed here."""

    def __init__(self, provider: Provider) -> None:
        how = install_command("providers")
        super().__init__(f"calling {provider.title} needs the package {provider.sdk}: {how}")
        self.provider = provider.name


def check_sdk(provider: Provider) -> None:
    """See whether a provider can be called from here, without importing anything; raises `MissingSdk`."""
    if provider.sdk and find_spec(provider.sdk) is None:
        raise MissingSdk(provider)


def http_timeout(seconds: float = LONGEST_CALL) -> httpx2.Timeout:
    """Return the timeouts of a call and, shorter, of a connection."""
    return httpx2.Timeout(seconds, connect=min(CONNECT_TIMEOUT, seconds))


def anthropic_client(
    access: ModelEndpoint,
    *,
    slots: int = 1,
    headers: Mapping[str, str] | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> "AsyncAnthropic":
    """Make a client of Anthropic's SDK; raises `MissingSdk`."""
    sdk = _imported(access.provider)
    return sdk.AsyncAnthropic(  # type: ignore[no-any-return]  # imported late
        api_key=access.key or NO_KEY,
        base_url=access.base_url,
        max_retries=0,
        timeout=http_timeout(),
        default_headers=headers,
        open_telemetry=False,
        http_client=sdk.DefaultAsyncHttpxClient(**_connections(access, slots, transport)),
    )


def openai_client(
    access: ModelEndpoint,
    *,
    slots: int = 1,
    headers: Mapping[str, str] | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> "AsyncOpenAI":
    """Make a client of OpenAI's SDK; raises `MissingSdk`."""
    sdk = _imported(access.provider)
    # The SDK reads these from the environment; they are meant for OpenAI's own endpoint only.
    private = (
        {}
        if access.provider.name == "openai"
        else {"OpenAI-Organization": sdk.omit, "OpenAI-Project": sdk.omit}
    )
    return sdk.AsyncOpenAI(  # type: ignore[no-any-return]  # imported late
        api_key=access.key or NO_KEY,
        base_url=access.base_url,
        max_retries=0,
        timeout=http_timeout(),
        default_headers={**private, **(headers or {})},
        http_client=sdk.DefaultAsyncHttpxClient(**_connections(access, slots, transport)),
    )


def errors_of(provider: Provider) -> tuple[type[Exception], ...]:
    """List what a call raises: the SDK's errors, connection errors, and invalid replies."""
    # RecursionError: the SDKs parse the events of a stream with a parser that nests as deep as they do.
    return (_imported(provider).APIError, httpx2.HTTPError, ValueError, RecursionError)


def _imported(provider: Provider) -> Any:  # noqa: ANN401 - a module that may not be there
    check_sdk(provider)
    return import_module(provider.sdk or Sdk.OPENAI)


def _connections(
    access: ModelEndpoint, slots: int, transport: httpx2.AsyncBaseTransport | None
) -> dict[str, Any]:
    limits = httpx2.Limits(max_connections=max(1, slots), max_keepalive_connections=max(1, slots))
    given = {"transport": transport} if transport else {}
    return {"limits": limits, "follow_redirects": False, **bounds(access.base_url), **given}
