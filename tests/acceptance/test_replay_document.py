"""The screens of the replay guide: every command still runs, and prints the same words."""

import re

from tests.acceptance.replay_screens import PAGE, screens, take_all
from tests.integration.worker import site, worker
from tests.replay_samples import GAP_TIMEOUT

CHANGING = {
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC": "TIME",
    r"\d\d:\d\d:\d\d\.\d{3}": "CLOCK",
    r"-?\d+(\.\d+)? (ms|s|min|h)\b( \d+ (s|min)\b)?": "SPAN",
    r"\b[0-9a-f]{12}\b": "ID",
    r"\d+ of these entries": "SOME of these entries",
    r"[ ]+": " ",
}
"""What differs from run to run, and what stands for it."""


def words(shown: str) -> list[str]:
    """The text of a screen without times, ids and the width of its columns."""
    for changing, name in CHANGING.items():
        shown = re.sub(changing, name, shown)
    return [line.strip() for line in shown.splitlines()]


async def test_every_screen_of_the_replay_guide_is_what_the_command_prints(redis_url, postgres_url):
    """Run `python -m tests.acceptance.replay_screens` if this fails because the words have changed."""
    page = PAGE.read_text(encoding="utf-8")
    async with site(redis_url, postgres_url) as here, worker(here, gap_timeout=GAP_TIMEOUT):
        taken = await take_all(here, page)
    assert len(taken) >= 8
    for command, shown in screens(page).items():
        assert words(taken[command]) == words(shown), command
