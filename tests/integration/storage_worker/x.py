"""x"""

from eventlog.events import Event
from tests.builders import history
from tests.integration.worker import (
    Site,
)

LIFE = "queued provisioning running responded scored completed"


def life(evaluation_id: str) -> list[Event]:
    return history(LIFE, evaluation_id=evaluation_id)


async def completed(here: Site, evaluation_id: str) -> bool:
    return await here.state(evaluation_id) == "completed"
