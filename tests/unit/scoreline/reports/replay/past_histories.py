"""Histories for tests of past states."""

from tests.builders import history
from tests.replaying import Scene

LIFE = "queued provisioning running responded scored completed"


async def reordered() -> Scene:
    """Return a scene with arrivals 0 3 2 1 5 4, a second apart, all stored."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*(events[n] for n in (0, 3, 2, 1, 5, 4)), pace=1)
    await scene.store()
    return scene
