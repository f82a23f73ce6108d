"""An evaluation is followed through outages."""

import json
from io import StringIO

import pytest
from rich.console import Console

from eventlog.events import Event
from eventlog.log import LogUnavailable
from scoreline.command_error import CommandError
from scoreline.reports.replay.follow import follow
from tests.builders import history
from tests.replaying import Scene
from tests.unit.scoreline.reports.replay.known_evaluations import SceneSources, scene

LIFE = "queued provisioning running responded scored completed"


async def followed(sources: SceneSources, key: str) -> None:
    """Follow an evaluation to its end, with JSON output."""
    await follow(sources, key, Console(file=StringIO()), as_json=True)


async def test_following_goes_on_through_outages(capsys: pytest.CaptureFixture[str]):
    """Redis fails twice; each entry is printed once, and stderr reports the outage and its end."""
    queued, *rest = history(LIFE, evaluation_id="e-1")
    begun = Scene(evaluation_id="e-1")
    begun.arrive(queued)
    script: list[list[Event] | Exception] = [
        rest[:2],
        LogUnavailable("away"),
        LogUnavailable("still away"),
        rest[2:],
    ]
    await followed(SceneSources(begun, script=script), "e-1")
    printed = capsys.readouterr()
    updates = [json.loads(line) for line in printed.out.splitlines()]
    assert [update.get("sequence") for update in updates] == [0, 1, 2, 3, 4, 5, None]
    assert updates[-1]["kind"] == "end"
    assert printed.err.splitlines() == ["A server does not answer; waiting for it.", "It answers again."]


async def test_following_an_unknown_evaluation_raises_after_the_timeout(monkeypatch: pytest.MonkeyPatch):
    """An unknown id raises a problem once the timeout for its first event is over."""
    monkeypatch.setattr("scoreline.reports.replay.follow.FIRST_EVENT_TIMEOUT", 0.0)
    with pytest.raises(CommandError, match="No evaluation e-9"):
        await followed(SceneSources(scene("e-1")), "e-9")
