"""A batch whose tables are audited."""

import json
from typing import Any

from tests.integration.worker import Site, scoreline

LIFE = "queued provisioning running responded scored completed"


async def is_stored(here: Site) -> bool:
    ended = await here.rows("SELECT total - pending, (SELECT count(*) FROM gap_bridges) FROM batch_status")
    states = {await here.state("open-gap"), await here.state("working")}
    return ended == [(7, 1)] and states == {"queued", "provisioning"}


def replay(here: Site, *arguments: str) -> tuple[int, str, str]:
    ran = scoreline(
        "replay", *arguments, EVAL_REDIS_URL=here.redis_url, EVAL_POSTGRES_URL=here.postgres_url
    )
    return ran.returncode, ran.stdout, ran.stderr


def document(here: Site, *arguments: str) -> dict[str, Any]:
    _, out, _ = replay(here, *arguments, "--json")
    [line] = out.splitlines()
    return dict(json.loads(line))
