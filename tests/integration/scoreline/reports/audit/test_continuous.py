"""A verifier beside a live fleet: what is stored is verified, and a difference is reported once."""

import json
import subprocess
from datetime import datetime, timedelta

from eventlog.keys import DEFAULT_SHARDS
from scoreline.reports.audit.continuous import ContinuousVerifier
from scoreline.settings import Settings
from tests.builders import BATCH
from tests.integration.worker import SCORELINE, Site, environment

DAY = timedelta(days=1)


async def clock(here: Site) -> datetime:
    """Read the clock of Postgres."""
    [(now,)] = await here.rows("SELECT now()")
    assert isinstance(now, datetime)
    return now


def first_line(here: Site, *options: str) -> bytes:
    """Start the command, and end it after its first line."""
    servers = {"EVAL_REDIS_URL": here.redis_url, "EVAL_POSTGRES_URL": here.postgres_url}
    command = [SCORELINE, "replay", "--verify", "--follow", *options]
    with subprocess.Popen(command, env=environment(**servers), stdout=subprocess.PIPE) as started:
        assert started.stdout
        line = started.stdout.readline()
        started.kill()
    return line


async def test_a_difference_is_reported_once(here: Site) -> None:
    """Also where the next cycle finds it again; another one of the same evaluation is reported."""
    verifier = ContinuousVerifier(here.conn, Settings(shards=DEFAULT_SHARDS), None)
    now = await clock(here)
    first = await verifier.run_cycle(now - DAY)
    assert (first.evaluations, first.new) == (9, [])
    await here.conn.execute("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'done-2'")
    [(batch_id, difference)] = (await verifier.run_cycle(now - DAY)).new
    assert (batch_id, difference.key, difference.column) == (BATCH, "done-2", "score")
    assert (await verifier.run_cycle(now - DAY)).new == []
    await here.conn.execute("UPDATE scorecards SET tokens = 99 WHERE evaluation_id = 'done-2'")
    [(_, another)] = (await verifier.run_cycle(now - DAY)).new
    assert another.column == "tokens"


async def test_what_did_not_move_is_not_verified(here: Site) -> None:
    """A cycle costs what was stored since the last one."""
    verifier = ContinuousVerifier(here.conn, Settings(shards=DEFAULT_SHARDS), BATCH)
    assert (await verifier.run_cycle(await clock(here) + DAY)).evaluations == 0


async def test_the_command_reports_differences_as_it_goes(here: Site) -> None:
    """`replay --verify --follow --json` prints one object a cycle, until it is ended."""
    await here.conn.execute("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'done-2'")
    cycle = json.loads(first_line(here, "--since", "1d", "--json"))
    assert (cycle["evaluations"], len(cycle["differences"])) == (9, 1)
    assert (cycle["differences"][0]["batch_id"], cycle["differences"][0]["key"]) == (BATCH, "done-2")
