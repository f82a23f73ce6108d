"""Every known way out of the sandbox is closed.

To show that the attacks are good ones, those that do no harm are tried without walls as well, and there
they succeed.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from executor.sandbox.job import Job, Outcome
from executor.sandbox.probe import Probe
from executor.sandbox.sandbox import Sandbox
from tests.integration.escapes import ATTACKS, REACHING_OUT, Attack
from tests.integration.sandboxed import FOOTINGS, needs_sandbox, python
from tests.waiting import until

pytestmark = needs_sandbox

PROJECT = Path(__file__).parents[2]
EXECUTOR = """
import asyncio
from executor.sandbox.job import Job
from executor.sandbox.sandbox import Sandbox
asyncio.run(Sandbox().run(Job({command}, 1000)))
"""
NEXT_CASE = """
import os
processes = sorted(name for name in os.listdir("/proc") if name.isdigit())
print(os.listdir("/tmp"), os.listdir("/dev/shm"), processes)
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A host with everything that an attack may be after."""
    place = tmp_path_factory.mktemp("host")
    facts: dict[str, Any] = {name: f"{name}-{uuid4().hex}" for name in ("canary", "token", "abstract")}
    facts |= {
        "socket": str(place / "s"),
        "secret": str(place / "secret.txt"),
        "shown": str(place / "shown"),
    }
    _furnish(place)
    at_home = [str(path) for path in Path.home().iterdir() if path.is_file()]
    facts["secrets"] = ["/etc/shadow", str(PROJECT / "pyproject.toml"), facts["secret"], *at_home]
    with (
        _listening(socket.AF_INET, ("127.0.0.1", 0)) as tcp,
        _listening(socket.AF_UNIX, facts["socket"]),
        _listening(socket.AF_UNIX, "\0" + facts["abstract"]),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        _victim(facts) as victim,
    ):
        udp.bind(("127.0.0.1", 0))
        facts |= {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "pid": victim.pid}
        yield facts
        victim.kill()


def _furnish(place: Path) -> None:
    place.chmod(0o755)
    (place / "secret.txt").write_text("secret")
    (place / "shown").mkdir()
    (place / "shown" / "file.txt").write_text("as it was")
    (place / "shown" / "link").symlink_to(place / "secret.txt")
    (place / "shown" / "way").symlink_to(place)


def _listening(family: socket.AddressFamily, address: Any) -> socket.socket:
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    return listener


def _victim(facts: dict[str, Any]) -> subprocess.Popen[bytes]:
    environ = {"SECRET": facts["canary"]}
    waiting = "import sys; sys.stdin.read()"
    return subprocess.Popen(
        [sys.executable, "-c", waiting, facts["token"]], env=environ, stdin=subprocess.PIPE, close_fds=True
    )


@pytest.fixture(params=FOOTINGS)
def footing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every footing that the walls can stand on here."""
    monkeypatch.setattr("executor.sandbox.sandbox.probe", lambda _: Probe(request.param))


@pytest.mark.usefixtures("footing")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_is_contained(attack: Attack, host: dict[str, Any]) -> None:
    """It ends as it should, gets nothing, takes no more than it may, and leaves the next case untouched."""
    outcome = await Sandbox().run(attack.job(host))
    assert b"ESCAPED" not in outcome.stdout
    assert outcome.killed_by in attack.ends, outcome
    assert outcome.seconds < attack.seconds + 5
    assert len(outcome.stdout) + len(outcome.stderr) <= attack.limits.output_bytes
    after = await Sandbox().run(python(NEXT_CASE))
    assert after.stdout.decode() == "['program.py'] [] ['1', '2']\n", after
    os.kill(host["pid"], 0)
    assert _content(Path(host["shown"])) == {"file.txt": "as it was", "link": "secret"}
    await until(lambda: _processes(host["token"]) == {host["pid"]})


def _content(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}


def _processes(token: str) -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("attack", REACHING_OUT, ids=lambda attack: attack.name)
async def test_the_same_attack_succeeds_without_walls(attack: Attack, host: dict[str, Any]) -> None:
    """It is the walls that contain it, not a mistake in the attack."""
    outside = Sandbox(allow_unsandboxed=True, bubblewrap="no-such-program")
    outcome = await outside.run(attack.job(host))
    assert b"ESCAPED" in outcome.stdout, outcome


async def test_a_run_that_is_cancelled_at_any_moment_leaves_nothing() -> None:
    """While it is being started, while the walls are being built, and when it runs."""
    token = f"cancelled-{uuid4().hex}"
    job = Job(("sh", "-c", f"sleep 1000; echo {token}"), seconds=1000)
    for turns in range(12):
        await _cancelled(asyncio.create_task(Sandbox().run(job)), turns=turns)
    for wanted in (1, 2, 3):
        task = asyncio.create_task(Sandbox().run(job))
        await _running(token, wanted)
        await _cancelled(task)
    await until(lambda: not _processes(token))


async def test_a_killed_executor_takes_its_programs_along() -> None:
    """Even one that had no time to say goodbye."""
    token = f"orphan-{uuid4().hex}"
    program = EXECUTOR.format(command=("sh", "-c", f"sleep 1000; echo {token}"))
    executor = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=PROJECT)
    await _running(token, 4)  # the executor, bubblewrap twice, and the shell
    executor.kill()
    await executor.wait()
    await until(lambda: not _processes(token))


async def _running(token: str, wanted: int) -> None:
    await until(lambda: len(_processes(token)) >= wanted)


async def _cancelled(task: asyncio.Task[Outcome], *, turns: int = 0) -> None:
    """Cancel a run after so many turns of the loop; it must end soon."""
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()
