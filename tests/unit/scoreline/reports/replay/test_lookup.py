"""Which evaluation was resolved; and following one through outages."""

import json
from collections.abc import Sequence
from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from eventlog.events import Event
from eventlog.log import LogUnavailable
from scoreline.problem import Problem
from scoreline.reports.replay.follow import follow
from scoreline.reports.replay.history import EvaluationHistory, SourceStatus
from scoreline.reports.replay.lookup import find, nearest, probes
from scoreline.reports.replay.sources import Sources
from tests.builders import history
from tests.replaying import Scene

LIFE = "queued provisioning running responded scored completed"


class Staged(Sources):
    """Sources that read scenes instead of servers; what is in `script` happens at each wait in turn."""

    def __init__(self, *scenes: Scene, batches: tuple[str, ...] = (), script: Sequence[object] = ()):
        super().__init__(None, None, timedelta(), SourceStatus(queried=True), SourceStatus(queried=True))
        self.scenes = {scene.evaluation_id: scene for scene in scenes}
        self.batches = batches
        self.script = iter(script)

    async def history(self, evaluation_id: str) -> EvaluationHistory:
        """Tell a scene, or that there is none."""
        return self.scenes.get(evaluation_id, Scene(evaluation_id=evaluation_id)).replayed()

    async def near(self, probes: list[str]) -> list[str]:
        """Return every id."""
        return sorted(self.scenes)

    async def is_batch(self, identifier: str) -> bool:
        """Whether it was named as a batch."""
        return identifier in self.batches

    async def wait(self, evaluation_id: str, *, seconds: float) -> None:
        """Let the next thing happen: events arrive and are stored, or a server goes away."""
        match next(self.script):
            case Exception() as away:
                raise away
            case list() as events:
                self.scenes[evaluation_id].arrive(*events)
                await self.scenes[evaluation_id].store()


def scene(evaluation_id: str, words: str = "queued provisioning") -> Scene:
    """An evaluation that has begun."""
    made = Scene(evaluation_id=evaluation_id)
    made.arrive(*history(words, evaluation_id=evaluation_id))
    return made


async def test_an_attempt_is_named_after_an_at_sign():
    """`ID@1` is the first attempt of ID."""
    resolved = await find(Staged(scene("e-1")), "e-1@1")
    assert (resolved.history.evaluation_id, resolved.attempt) == ("e-1", 1)


async def test_an_id_that_contains_an_at_sign_wins():
    """Ids are foreign text, too."""
    resolved = await find(Staged(scene("e-1"), scene("e-1@1")), "e-1@1")
    assert (resolved.history.evaluation_id, resolved.attempt) == ("e-1@1", None)


@pytest.mark.parametrize("text", ["e-1@", "@1", "e-1@x", "e-2@1"])
async def test_what_names_no_attempt_is_an_unknown_id(text: str):
    """Nothing is guessed."""
    with pytest.raises(Problem, match="No evaluation"):
        await find(Staged(scene("e-1")), text)


async def test_an_attempt_that_was_never_opened_is_named_with_those_that_were():
    """The message says which there are."""
    with pytest.raises(Problem, match="e-1 has no attempt 3; there is: 1"):
        await find(Staged(scene("e-1")), "e-1@3")


async def test_a_batch_is_told_from_an_evaluation():
    """And the command that shows batches is named."""
    with pytest.raises(Problem, match="It is a batch: scoreline replay --batch b-1 --summary"):
        await find(Staged(scene("e-1"), batches=("b-1",)), "b-1")


async def test_bytes_that_are_no_text_are_no_id():
    """What a shell may pass on is refused, not tripped over."""
    with pytest.raises(Problem, match="not valid UTF-8"):
        await find(Staged(), "e-\udcff")


def test_the_nearest_ids_come_first_and_the_unlike_not_at_all():
    """Ranked by likeness, whatever their case."""
    near = nearest("Demo-0012", ["demo-0012", "demo-0013", "zebra", "demo-9"])
    assert near == ["demo-0012", "demo-0013", "demo-9"]


def test_probes_stand_wherever_the_beginning_is_right():
    """A slip late in an id is near its beginning in the order of ids; its case may be wrong as a whole."""
    found = probes("Abcd")
    assert {"Abcd", "abcd", "ABCD", "A", "Ab", "Abc"} <= set(found)


async def followed(sources: Staged, key: str) -> None:
    """Follow to the end, as a machine does."""
    await follow(sources, key, Console(file=StringIO()), as_json=True)


async def test_following_goes_on_through_outages(capsys: pytest.CaptureFixture[str]):
    """Redis goes away twice; nothing is lost, nothing told twice, and people are told on stderr."""
    queued, *rest = history(LIFE, evaluation_id="e-1")
    begun = Scene(evaluation_id="e-1")
    begun.arrive(queued)
    happens: list[list[Event] | Exception] = [
        rest[:2],
        LogUnavailable("away"),
        LogUnavailable("still away"),
        rest[2:],
    ]
    await followed(Staged(begun, script=happens), "e-1")
    said = capsys.readouterr()
    told = [json.loads(line) for line in said.out.splitlines()]
    assert [line.get("sequence") for line in told] == [0, 1, 2, 3, 4, 5, None]
    assert told[-1]["kind"] == "end"
    assert said.err.splitlines() == ["A server does not answer; waiting for it.", "It is back."]


async def test_following_what_nobody_knows_ends_after_a_moment(monkeypatch: pytest.MonkeyPatch):
    """An unknown id is an error, once its first event has had a moment to appear."""
    monkeypatch.setattr("scoreline.reports.replay.follow.FIRST_MOMENT", 0.0)
    with pytest.raises(Problem, match="No evaluation e-9"):
        await followed(Staged(scene("e-1")), "e-9")
