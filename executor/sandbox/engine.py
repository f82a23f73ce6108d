"""A client of container engines, with the few calls of the Docker Engine API that one run needs.

Standard input is sent on a connection that is upgraded to a raw stream. Closing it ends the program's
input. Output is received as frames: one byte for the stream, three zero bytes, four bytes for the length.
"""

import struct
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from eventlog.redaction import redact_head, redact_tail
from executor.contract import Permanent, Transient

DEFAULT_HOST = "unix:///var/run/docker.sock"
_VERSION = "v1.41"
_TIMEOUT = httpx2.Timeout(30, connect=5)
_NO_LIMIT = httpx2.Timeout(30, connect=5, read=None)
_FRAME = struct.Struct(">BxxxI")
_UPGRADE = {"Connection": "Upgrade", "Upgrade": "tcp"}

Frame = tuple[int, bytes]
"""1 for standard output or 2 for standard error, and the bytes written."""


class FrameDecoder:
    """Takes a stream of frames apart; a long one is handed on in pieces, so nothing large is held."""

    def __init__(self) -> None:
        self._header = b""
        self._stream = self._left = 0

    def taken_from(self, piece: bytes) -> Iterator[Frame]:
        """Return the frames completed by the next piece of the stream."""
        while piece:
            content, piece = piece[: self._left], piece[self._left :]
            if content:
                yield self._stream, content
                self._left -= len(content)
            missing = _FRAME.size - len(self._header)
            if not self._left:
                self._header, piece = self._header + piece[:missing], piece[missing:]
            if len(self._header) == _FRAME.size:
                self._stream, self._left = _FRAME.unpack(self._header)
                self._header = b""


class EngineUnavailable(Exception):  # noqa: N818 - names the state
    """No container engine responds."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"no container engine answers at {host}: start one, or set DOCKER_HOST to where it is"
        )
        self.host = host


class ImageMissing(Exception):  # noqa: N818 - names the state
    """The engine does not have the image."""


class ContainerEngine:
    """One engine; every method raises a `CallFault` where it does not answer as it should."""

    def __init__(self, host: str = DEFAULT_HOST) -> None:
        self.host = host
        self._client = httpx2.AsyncClient(
            transport=_transport(host),
            base_url=f"{_base_url(host)}/{_VERSION}",
            timeout=_TIMEOUT,
            trust_env=False,
        )

    @property
    def is_local(self) -> bool:
        """Whether it sees the same files as we do."""
        return self.host.startswith("unix://")

    async def create(self, name: str, config: dict[str, Any]) -> None:
        """Create a container; raises `EngineUnavailable` or `ImageMissing`."""
        try:
            response = await self._client.post("/containers/create", params={"name": name}, json=config)
        except httpx2.ConnectError as error:
            raise EngineUnavailable(self.host) from error
        except httpx2.TransportError as error:
            raise _broken_off(error) from error
        if response.status_code == 404:
            raise ImageMissing
        _demand(response, 201)

    async def pull(self, image: str) -> None:
        """Pull an image; the engine reports failure in the last of many lines."""
        params = (
            {"fromImage": image}
            if ":" in image.rpartition("/")[2]
            else {"fromImage": image, "tag": "latest"}
        )
        async with self._stream("POST", "/images/create", params=params, timeout=_NO_LIMIT) as response:
            lines = [line async for line in response.aiter_lines()]
        if response.status_code != 200 or any('"error"' in line for line in lines[-2:]):
            raise Permanent("image", f"{image} can't be pulled: {redact_tail(' '.join(lines[-2:]), 500)}")

    @asynccontextmanager
    async def stdin(self, name: str) -> AsyncIterator[Any]:
        """Open the container's standard input, as a stream with `write`."""
        params = {"stream": "1", "stdin": "1"}
        async with self._stream(
            "POST", f"/containers/{name}/attach", params=params, headers=_UPGRADE, timeout=_NO_LIMIT
        ) as response:
            _demand(response, 101)
            yield response.extensions["network_stream"]

    async def start(self, name: str) -> None:
        """Start a container."""
        response = await self._call("POST", f"/containers/{name}/start")
        if response.status_code in {400, 404, 500}:  # no such program in the image, and the like
            raise Permanent("container", f"the container did not start: {_error_text(response)}")
        _demand(response, 204)

    async def output(self, name: str) -> AsyncGenerator[Frame]:
        """Follow what a container writes, until it ends."""
        params = {"follow": "1", "stdout": "1", "stderr": "1"}
        path = f"/containers/{name}/logs"
        async with self._stream("GET", path, params=params, timeout=_NO_LIMIT) as response:
            _demand(response, 200)
            frames = FrameDecoder()
            async for piece in response.aiter_raw():
                for frame in frames.taken_from(piece):
                    yield frame

    async def wait(self, name: str) -> int:
        """Wait for the container's end; returns its exit code."""
        response = await self._call("POST", f"/containers/{name}/wait", timeout=_NO_LIMIT)
        return int(_demand(response, 200).json()["StatusCode"])

    async def ran_out_of_memory(self, name: str) -> bool:
        """Whether the kernel killed the container for its memory."""
        response = await self._call("GET", f"/containers/{name}/json")
        return bool(_demand(response, 200).json()["State"].get("OOMKilled"))

    async def kill(self, name: str) -> None:
        """Kill a container; one that has just ended is no error."""
        _demand(await self._call("POST", f"/containers/{name}/kill"), 204, 404, 409)

    async def remove(self, name: str) -> None:
        """Remove a container in any state; a missing one is no error."""
        params = {"force": "1", "v": "1"}
        _demand(await self._call("DELETE", f"/containers/{name}", params=params), 204, 404, 409)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _call(self, method: str, path: str, **more: Any) -> httpx2.Response:  # noqa: ANN401 - httpx2's
        try:
            return await self._client.request(method, path, **more)
        except httpx2.TransportError as error:
            raise _broken_off(error) from error

    @asynccontextmanager
    async def _stream(self, method: str, path: str, **more: Any) -> AsyncIterator[httpx2.Response]:  # noqa: ANN401
        try:
            async with self._client.stream(method, path, **more) as response:
                if response.status_code >= 300:
                    await response.aread()
                yield response
        except httpx2.TransportError as error:
            raise _broken_off(error) from error


def _broken_off(error: httpx2.TransportError) -> Transient:
    return Transient(
        "engine", f"the connection to the container engine failed: {type(error).__name__} {error}".strip()
    )


def _transport(host: str) -> httpx2.AsyncHTTPTransport:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=10)
    uds = host.removeprefix("unix://") if host.startswith("unix://") else None
    return httpx2.AsyncHTTPTransport(uds=uds, limits=limits, trust_env=False)


def _base_url(host: str) -> str:
    scheme, _, address = host.partition("://")
    match scheme:
        case "unix":
            return "http://engine"
        case "tcp" | "http":
            return f"http://{address}"
        case _:
            raise ValueError(f"DOCKER_HOST is {host!r}; unix:///path and tcp://host:port are understood")


def _demand(response: httpx2.Response, *wanted: int) -> httpx2.Response:
    if response.status_code not in wanted:
        raise Transient(
            "engine", f"the container engine returned {response.status_code}: {_error_text(response)}"
        )
    return response


def _error_text(response: httpx2.Response) -> str:
    try:
        return redact_head(str(response.json()["message"]), 500)
    except (ValueError, KeyError, TypeError):
        return redact_head(response.text, 500)
