"""Resolving the id of an evaluation, and following one through outages."""

import json
from collections.abc import Sequence
from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from eventlog.events import Event
from eventlog.log import LogUnavailable
from scoreline.command_error import CommandError
from scoreline.reports.replay.follow import follow
from scoreline.reports.replay.history import EvaluationHistory, SourceStatus
from scoreline.reports.replay.lookup import find, nearest, probes
from scoreline.reports.replay.sources import Sources
from tests.builders import history
from tests.replaying import Scene

LIFE = "queued provisioning running responded scored completed"


class SceneSources(Sources):
    """Sources that read scenes instead of servers; each wait takes the next step of `script`."""

    def __init__(self, *scenes: Scene, batches: tuple[str, ...] = (), script: Sequence[object] = ()):
        super().__init__(None, None, timedelta(), SourceStatus(queried=True), SourceStatus(queried=True))
        self.scenes = {scene.evaluation_id: scene for scene in scenes}
        self.batches = batches
        self.script = iter(script)

    async def history(self, evaluation_id: str) -> EvaluationHistory:
        """Return the history of a scene; an empty one where there is none."""
        return self.scenes.get(evaluation_id, Scene(evaluation_id=evaluation_id)).replayed()

    async def near(self, probes: list[str]) -> list[str]:
        """Return every id."""
        return sorted(self.scenes)

    async def is_batch(self, identifier: str) -> bool:
        """Whether it is the id of a batch."""
        return identifier in self.batches

    async def wait(self, evaluation_id: str, *, seconds: float) -> None:
        """Take the next step: events arrive and are stored, or a server becomes unavailable."""
        match next(self.script):
            case Exception() as error:
                raise error
            case list() as events:
                self.scenes[evaluation_id].arrive(*events)
                await self.scenes[evaluation_id].store()


def scene(evaluation_id: str, words: str = "queued provisioning") -> Scene:
    """An evaluation that has begun."""
    made = Scene(evaluation_id=evaluation_id)
    made.arrive(*history(words, evaluation_id=evaluation_id))
    return made


async def test_an_attempt_follows_an_at_sign():
    """`ID@1` is the first attempt of ID."""
    resolved = await find(SceneSources(scene("e-1")), "e-1@1")
    assert (resolved.history.evaluation_id, resolved.attempt) == ("e-1", 1)


async def test_an_id_that_contains_an_at_sign_takes_precedence():
    """`e-1@1` resolves to the evaluation of that id before attempt 1 of `e-1`."""
    resolved = await find(SceneSources(scene("e-1"), scene("e-1@1")), "e-1@1")
    assert (resolved.history.evaluation_id, resolved.attempt) == ("e-1@1", None)


@pytest.mark.parametrize("text", ["e-1@", "@1", "e-1@x", "e-2@1"])
async def test_a_malformed_attempt_is_an_unknown_id(text: str):
    """Text that is neither an id nor ID@ATTEMPT raises a problem."""
    with pytest.raises(CommandError, match="No evaluation"):
        await find(SceneSources(scene("e-1")), text)


async def test_an_unknown_attempt_is_reported_with_the_existing_ones():
    """The message lists the attempts of the evaluation."""
    with pytest.raises(CommandError, match="e-1 has no attempt 3; there is: 1"):
        await find(SceneSources(scene("e-1")), "e-1@3")


async def test_the_id_of_a_batch_is_reported_as_such():
    """The message has the command that shows the batch."""
    with pytest.raises(CommandError, match="It is a batch: scoreline replay --batch b-1 --summary"):
        await find(SceneSources(scene("e-1"), batches=("b-1",)), "b-1")


async def test_bytes_that_are_not_utf_8_are_rejected():
    """Invalid UTF-8 from a shell raises a problem, not an encoding error."""
    with pytest.raises(CommandError, match="not valid UTF-8"):
        await find(SceneSources(), "e-\udcff")


def test_the_nearest_ids_come_first_and_dissimilar_ones_are_left_out():
    """Ids are ranked by similarity, regardless of case."""
    near = nearest("Demo-0012", ["demo-0012", "demo-0013", "zebra", "demo-9"])
    assert near == ["demo-0012", "demo-0013", "demo-9"]


def test_probes_are_the_text_its_cases_and_its_prefixes():
    """A prefix finds ids with a typo near the end; both cases find ids typed in the wrong case."""
    positions = probes("Abcd")
    assert {"Abcd", "abcd", "ABCD", "A", "Ab", "Abc"} <= set(positions)


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
