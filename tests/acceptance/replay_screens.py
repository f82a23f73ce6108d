"""The screens of docs/how-to/replay.md, taken from the real command on real servers.

python -m tests.acceptance.replay_screens     lives the five lives again and takes every screen anew
"""

import asyncio
import re
import shlex
import tempfile
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from scoreline.local.embedded import embedded_servers
from tests.integration.worker import SCORELINE, Site, environment, site, worker
from tests.replay_samples import ALPHA, SHORT, attempt, whole, write_samples

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "replay.md"
SCREEN = re.compile(
    r"(?P<head><!-- screen -->\n```console\n\$ (?P<command>[^\n]+)\n)"
    r"(?P<shown>.*?)"
    r"(?P<foot>```\n<!-- /screen -->)",
    re.DOTALL,
)
COLUMNS = "118"
TIMEOUT = 60
GAP_TIMEOUT = timedelta(seconds=3)
FOLLOWED = [(0,), (2,), (1,), (3,), (4,), (5,)]
"""Events that arrive while a terminal follows: 2 before 1."""
NEW_LINES = [2, 2, 2, 1, 1, 1]
"""Lines that each arrival adds; the first comes with a greeting."""


def screens(page: str) -> dict[str, str]:
    """Find the commands of a page, and the output it shows for them."""
    return {found["command"]: found["shown"] for found in SCREEN.finditer(page)}


def redrawn(page: str, shown: Callable[[str], str]) -> str:
    """Put new screens in the place of the old ones."""
    return SCREEN.sub(lambda found: f"{found['head']}{shown(found['command'])}{found['foot']}", page)


async def take(here: Site, command: str) -> str:
    """Run a command of the page as it stands, and return what a terminal would show."""
    program, *arguments = shlex.split(command)
    assert program == "scoreline"
    urls = {"EVAL_REDIS_URL": here.redis_url, "EVAL_POSTGRES_URL": here.postgres_url}
    process = await asyncio.create_subprocess_exec(
        SCORELINE, *arguments, stdout=PIPE, stderr=STDOUT, env=environment(**urls, COLUMNS=COLUMNS)
    )
    assert process.stdout
    seen = b""
    if "--follow" in arguments:
        events = attempt(arguments[1], whole(ALPHA, SHORT, 1.0))
        for arriving, lines in zip(FOLLOWED, NEW_LINES, strict=True):
            await here.add_plainly(events[n] for n in arriving)
            for _ in range(lines):
                seen += await asyncio.wait_for(process.stdout.readline(), TIMEOUT)
    rest, _ = await asyncio.wait_for(process.communicate(), TIMEOUT)
    return (seen + rest).decode()


async def take_all(here: Site, page: str) -> dict[str, str]:
    """Live the five lives, then run every command of a page."""
    await write_samples(here)
    commands = list(screens(page))
    taken = await asyncio.gather(*(take(here, command) for command in commands))
    return dict(zip(commands, taken, strict=True))


async def _redraw(redis_url: str, postgres_url: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    async with site(redis_url, postgres_url) as here, worker(here, gap_timeout=GAP_TIMEOUT):
        taken = await take_all(here, page)
    PAGE.write_text(redrawn(page, taken.__getitem__), encoding="utf-8")


def main() -> None:
    """Take every screen anew."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        embedded_servers(Path(root)) as servers,
    ):
        asyncio.run(_redraw(servers.redis_url, servers.postgres_url))


if __name__ == "__main__":
    main()
