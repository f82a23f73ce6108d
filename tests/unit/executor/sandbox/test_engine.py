"""The client of container engines: its errors, and frames of output."""

from collections.abc import AsyncIterator, Callable

import httpx2
import pytest

from executor.contract import CallFault, Permanent, Transient
from executor.sandbox.engine import ContainerEngine, EngineUnavailable, FrameDecoder, ImageMissing

Handler = Callable[[httpx2.Request], httpx2.Response]


@pytest.fixture
async def engine(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[Handler], ContainerEngine]]:
    """A function that makes an engine of which every request is answered by a handler."""
    made: list[ContainerEngine] = []

    def make(handler: Handler) -> ContainerEngine:
        monkeypatch.setattr("executor.sandbox.engine._transport", lambda _: httpx2.MockTransport(handler))
        made.append(ContainerEngine("tcp://engine.test:2375"))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()


def returning(status: int, message: str = "a reason") -> Handler:
    return lambda _request: httpx2.Response(status, json={"message": message})


@pytest.mark.parametrize(
    ("status", "fault", "words"),
    [
        (400, Permanent, "the container did not start: a reason"),
        (500, Permanent, "the container did not start: a reason"),
        (409, Transient, "the container engine returned 409: a reason"),
    ],
)
async def test_a_container_that_does_not_start_is_a_fault(
    engine: Callable[[Handler], ContainerEngine], status: int, fault: type[CallFault], words: str
) -> None:
    """Permanent where the image has no such program, otherwise transient; with the engine's reason."""
    with pytest.raises(fault) as caught:
        await engine(returning(status)).start("c")
    assert caught.value.message == words


@pytest.mark.parametrize("status", [204, 404, 409])
async def test_a_container_that_is_gone_need_not_be_killed_or_removed(
    engine: Callable[[Handler], ContainerEngine], status: int
) -> None:
    """Both calls come after its end; any other status is a fault."""
    await engine(returning(status)).kill("c")
    await engine(returning(status)).remove("c")
    for call in (ContainerEngine.kill, ContainerEngine.remove):
        with pytest.raises(Transient, match="returned 500"):
            await call(engine(returning(500)), "c")


async def test_a_missing_image_and_a_missing_engine_are_different_errors(
    engine: Callable[[Handler], ContainerEngine],
) -> None:
    """The one can be pulled; the other has to be started, and its error names the address."""

    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with pytest.raises(ImageMissing):
        await engine(returning(404)).create("c", {})
    with pytest.raises(EngineUnavailable, match=r"tcp://engine\.test:2375: start one, or set DOCKER_HOST"):
        await engine(refuse).create("c", {})
    with pytest.raises(Transient, match="the connection to the container engine failed: ConnectError"):
        await engine(refuse).wait("c")


@pytest.mark.parametrize(
    ("image", "sent"),
    [
        ("python", {"fromImage": "python", "tag": "latest"}),
        ("host.test:5000/python", {"fromImage": "host.test:5000/python", "tag": "latest"}),
        ("python:3.12", {"fromImage": "python:3.12"}),
        ("python@sha256:0a", {"fromImage": "python@sha256:0a"}),
    ],
)
async def test_an_image_without_a_tag_is_pulled_as_latest(
    engine: Callable[[Handler], ContainerEngine], image: str, sent: dict[str, str]
) -> None:
    """Without a tag the engine would pull all of them; a registry's port is no tag."""
    requests: list[httpx2.Request] = []

    def accept(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return httpx2.Response(200, text='{"status":"done"}\n')

    await engine(accept).pull(image)
    assert dict(requests[0].url.params) == sent


async def test_a_pull_that_fails_in_its_last_lines_is_a_fault(
    engine: Callable[[Handler], ContainerEngine],
) -> None:
    """The status is 200 all the same."""
    text = '{"status":"pulling"}\n{"error":"access denied"}\n'
    with pytest.raises(Permanent, match=r"x can't be pulled: .*access denied"):
        await engine(lambda _: httpx2.Response(200, text=text)).pull("x")


def test_frames_come_apart_wherever_the_stream_is_cut() -> None:
    """Byte by byte or all at once: the same text on the same stream."""
    stream = b"\1\0\0\0\0\0\0\5hello" + b"\2\0\0\0\0\0\0\0" + b"\2\0\0\0\0\0\0\2no"
    for size in range(1, len(stream) + 1):
        frames = FrameDecoder()
        received = {1: b"", 2: b""}
        for at in range(0, len(stream), size):
            for number, text in frames.taken_from(stream[at : at + size]):
                received[number] += text
        assert received == {1: b"hello", 2: b"no"}


def test_an_address_that_is_not_understood_is_refused() -> None:
    """The error names the two supported kinds."""
    with pytest.raises(ValueError, match="unix:///path and tcp://host:port"):
        ContainerEngine("ssh://somewhere")
