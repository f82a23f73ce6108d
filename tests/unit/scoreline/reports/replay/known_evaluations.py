"""Sources of evaluations for tests of their lookup."""

from collections.abc import Sequence
from datetime import timedelta

from scoreline.reports.replay.history import EvaluationHistory, SourceStatus
from scoreline.reports.replay.sources import Sources
from tests.builders import history
from tests.replaying import Scene


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
