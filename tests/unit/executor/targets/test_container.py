"""The container target, against a small engine: whatever happens, no container is left."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, TargetReply, TargetRequest, Transient
from executor.targets.container import CONTAINER, ContainerTarget
from tests.unit.executor.targets.fake_engine import Box, FakeEngine, fake_engine
from tests.waiting import until


async def shout(box: Box) -> int:
    """Answer in capitals, and write to standard error."""
    box.write((await box.stdin.read(-1)).upper())
    box.write(b"muttering", stream=2)
    box.write(b"!\n")
    return 0


async def ignore(box: Box) -> int:
    """Answer without reading the input."""
    box.is_deaf = True
    await asyncio.sleep(0.02)
    box.write(b"unasked")
    return 0


async def fail(box: Box) -> int:
    """Write a reason, and fail."""
    box.write(b"no such chance", stream=2)
    return 3


async def hang(box: Box) -> int:
    """Never end."""
    await asyncio.Event().wait()
    return 0


async def flood(box: Box) -> int:
    """Write for ever."""
    while True:
        box.write(b"x" * 65_536)
        await asyncio.sleep(0)


async def hoard(box: Box) -> int:
    """Be killed for memory."""
    box.oom_killed = True
    return 137


async def report(box: Box) -> int:
    """Report a result on the socket that was bound."""
    directory = box.config["HostConfig"]["Binds"][0].split(":")[0]
    _, writer = await asyncio.open_unix_connection(f"{directory}/report.sock")
    writer.write(json.dumps({"type": "result", "output": "reported", "cost_usd": 0.5}).encode() + b"\n")
    writer.close()
    await writer.wait_closed()
    return 0


IMAGES = {each.__name__: each for each in (shout, ignore, fail, hang, flood, hoard, report)}


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[FakeEngine]:
    """An engine with all images."""
    async with fake_engine(tmp_path / "s", dict(IMAGES)) as engine:
        yield engine


def question(prompt: str = "hello", *, seconds: float = 10, **fields: Any) -> TargetRequest:
    """A question that may take this long."""
    return TargetRequest("e-1", prompt, p.Case(id="c-1"), fields, timeout=seconds)


def target(engine: FakeEngine, image: str, **options: Any) -> ContainerTarget:
    """A target on that engine."""
    return CONTAINER.make(
        {"image": image, **options}, ExecutionEnvironment(environ={"DOCKER_HOST": engine.host})
    )


async def ask(
    engine: FakeEngine, image: str, about: TargetRequest | None = None, **options: Any
) -> TargetReply:
    """Ask once, and see that nothing is left."""
    container = target(engine, image, **options)
    try:
        return await container.call(about or question())
    finally:
        assert engine.boxes == {}
        await container.aclose()


async def test_the_prompt_goes_in_and_standard_output_comes_back(engine: FakeEngine) -> None:
    """Input ends, frames are put together, and the two streams are kept apart."""
    reply = await ask(engine, "shout")
    assert (reply.answer.output, reply.exit_code) == ("HELLO!", 0)
    assert engine.calls[-1] == "DELETE containers"


@pytest.mark.parametrize("characters", [0, 5, 4_000_000])
async def test_a_container_need_not_read_its_input(engine: FakeEngine, characters: int) -> None:
    """The engine closes the connection with input unread: the output is the answer all the same."""
    for _ in range(20):
        reply = await ask(engine, "ignore", question("x" * characters))
        assert (reply.answer.output, reply.exit_code) == ("unasked", 0)


async def test_a_container_has_no_network_no_rights_and_limits(engine: FakeEngine) -> None:
    """All isolation options are sent to the engine."""
    await ask(engine, "shout", limits={"memory_mb": 64, "processes": 5}, cpus=0.5)
    (config,) = engine.configs
    host_config = config["HostConfig"]
    assert (host_config["NetworkMode"], host_config["ReadonlyRootfs"], host_config["CapDrop"]) == (
        "none",
        True,
        ["ALL"],
    )
    assert host_config["SecurityOpt"] == ["no-new-privileges"]
    assert host_config["Memory"] == host_config["MemorySwap"] == 64 * 1024 * 1024
    assert (host_config["PidsLimit"], host_config["NanoCpus"]) == (5, 500_000_000)
    assert config["User"] == "65534:65534"
    assert config["Labels"] == {"scoreline.evaluation": "e-1"}


async def test_data_stay_one_argument(engine: FakeEngine) -> None:
    """The command is taken apart before it is filled in."""
    await ask(engine, "shout", question(input="a b; c"), command="solve --of {input}")
    assert engine.configs[0]["Cmd"] == ["solve", "--of", "a b; c"]


async def test_a_reported_result_is_the_answer(engine: FakeEngine) -> None:
    """The socket's directory is bound, for reading only."""
    answer = (await ask(engine, "report")).answer
    assert (answer.output, answer.cost_usd) == ("reported", 0.5)
    assert engine.configs[0]["HostConfig"]["Binds"][0].endswith(":/run/scoreline:ro")


@pytest.mark.parametrize(
    ("image", "fault", "kind", "words"),
    [
        ("fail", Permanent, "exit_code", "3: no such chance"),
        ("hang", Transient, "timeout", "stopped after"),
        ("flood", Permanent, "output_limit", "wrote more than"),
        ("hoard", Permanent, "memory_limit", "512 MB"),
        ("missing", Permanent, "image", "docker pull missing"),
    ],
)
async def test_what_goes_wrong_is_a_fault_and_leaves_no_container(
    engine: FakeEngine, image: str, fault: type[Exception], kind: str, words: str
) -> None:
    """Each failure has its own kind, and its message holds the remedy or the program's output."""
    with pytest.raises(fault) as raised:
        await ask(engine, image, question(seconds=0.5))
    assert isinstance(raised.value, Permanent | Transient)
    assert raised.value.kind == kind
    assert words in raised.value.message


@pytest.mark.parametrize("image", ["hang", "flood"])
async def test_what_goes_on_too_long_is_killed(engine: FakeEngine, image: str) -> None:
    """The container is killed, not merely ignored."""
    with pytest.raises((Permanent, Transient)):
        await ask(engine, image, question(seconds=0.5))
    assert "POST containers/kill" in engine.calls


async def test_a_cancelled_run_leaves_no_container(engine: FakeEngine) -> None:
    """Not even if the call is cancelled a second time while its container is being removed."""
    container = target(engine, "hang")
    task = asyncio.create_task(container.call(question()))
    await until(lambda: "GET containers/logs" in engine.calls)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await container.aclose()
    assert engine.boxes == {}


async def test_an_engine_that_vanishes_is_a_transient_error(engine: FakeEngine) -> None:
    """The call ends at once with a transient error that names the engine."""
    container = target(engine, "hang")
    task = asyncio.create_task(container.call(question()))
    await until(lambda: "GET containers/logs" in engine.calls)
    await engine.vanish()
    with pytest.raises(Transient, match="engine"):
        await task
    await container.aclose()


async def test_without_an_engine_the_error_is_permanent(tmp_path: Path) -> None:
    """The error names the setting that gave the engine's address."""
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/missing.sock"}
    container = CONTAINER.make({"image": "shout"}, ExecutionEnvironment(environ=environ))
    with pytest.raises(Permanent, match="DOCKER_HOST") as refused:
        await container.call(question())
    assert refused.value.kind == "no_engine"
    await container.aclose()


async def test_a_missing_image_is_pulled_if_configured(engine: FakeEngine) -> None:
    """The image is pulled once; if the pull fails, the engine's error is passed on."""
    engine.in_registry["remote"] = shout
    assert (await ask(engine, "remote", pull=True)).answer.output == "HELLO!"
    with pytest.raises(Permanent, match="pull access denied"):
        await ask(engine, "unknown", pull=True)


async def test_unread_input_does_not_fail_the_run(engine: FakeEngine) -> None:
    """A program may end without reading its standard input."""
    engine.images["no-reader"] = fail
    reply = await ask(engine, "no-reader", question("x" * 400_000), ok_exit_codes=[3])
    assert reply.exit_code == 3
