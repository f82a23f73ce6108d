"""The fault matrix: the rows of the core (storage worker, event queue, Redis, Postgres), then the fleet's.

`make test` runs each once, `make proof` at least twenty times. A row is a function with one sentence: what
is done, and what is expected. The rows of the core have writers of their own, which send and lose what no
executor would; where they need a coordinator, a few lines of test code open the next attempt
(`control.py`). The rows of the fleet run the real coordinators and executors. Clocks are the writers': no
other is read for anything that matters.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.chaos.faults_events import (
    clocks_jump,
    events_conflict,
    events_corrupt,
    events_disordered,
    events_dropped,
)
from tests.chaos.faults_executors import executor_killed, zombie_executor
from tests.chaos.faults_fleet import (
    coordinator_killed_in_mid_batch,
    coordinator_killed_in_mid_submit,
    executor_frozen,
    executors_killed,
    fleet_everything_in_turn,
    postgres_killed_under_a_fleet,
    redis_killed_under_a_fleet,
    redis_lost_under_a_fleet,
)
from tests.chaos.faults_links import (
    commit_reply_lost,
    worker_parted_from_postgres,
    worker_parted_from_redis,
    writer_parted_from_redis,
)
from tests.chaos.faults_servers import (
    commits_cut_by_the_server,
    postgres_full,
    postgres_killed,
    postgres_stopped,
    redis_flushed,
    redis_full,
    redis_killed,
    redis_loses_power,
    redis_lost_whole,
    redis_stalls,
)
from tests.chaos.faults_together import everything_in_turn
from tests.chaos.faults_workers import (
    redelivery_storm,
    two_workers_killed,
    worker_dies_after_commit,
    worker_dies_before_commit,
)
from tests.chaos.full_disk import no_small_disk
from tests.chaos.mutations import Conflicting, Corrupting, Dropping, disordered, jumping_clock
from tests.chaos.run import Run, Setup

PATIENT = 30.0
"""Seconds a gap may last where nothing was made away with: a bridge would be a mistake."""
IMPATIENT = 0.5
STALE = frozenset({"applied", "stale"})
LATE = frozenset({"applied", "late", "stale"})
REJECTED = frozenset({"applied", "rejected"})
FLEET = Setup(evaluations=0, gap_timeout=PATIENT, verdicts=STALE)
"""The fleet does the writing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the matrix."""

    inject: Callable[[Run], Awaitable[None]]
    setup: Setup = field(default_factory=Setup)
    impossible: Callable[[], str] = str
    """Returns why the row can't be run here; nothing if it can."""

    @property
    def name(self) -> str:
        """What the row is called."""
        return self.inject.__name__

    @property
    def sentence(self) -> str:
        """What is done, and what is expected."""
        return self.inject.__doc__ or ""


ROWS = (
    Fault(worker_dies_before_commit),
    Fault(worker_dies_after_commit),
    Fault(two_workers_killed, Setup(workers=2)),
    Fault(redelivery_storm, Setup(workers=0, evaluations=80)),
    Fault(zombie_executor, Setup(evaluations=0, verdicts=STALE)),
    Fault(executor_killed, Setup(evaluations=0, verdicts=STALE)),
    Fault(commits_cut_by_the_server),
    Fault(commit_reply_lost),
    Fault(redis_stalls),
    Fault(redis_killed),
    Fault(redis_loses_power),
    Fault(redis_lost_whole),
    Fault(redis_flushed),
    Fault(redis_full),
    Fault(postgres_killed),
    Fault(postgres_stopped),
    Fault(postgres_full, Setup(workers=0), impossible=no_small_disk),
    Fault(worker_parted_from_redis),
    Fault(worker_parted_from_postgres),
    Fault(writer_parted_from_redis),
    Fault(events_disordered, Setup(log=disordered, gap_timeout=PATIENT)),
    Fault(events_dropped, Setup(log=Dropping, clock=jumping_clock, gap_timeout=IMPATIENT, verdicts=LATE)),
    Fault(events_conflict, Setup(log=Conflicting)),
    Fault(events_corrupt, Setup(log=Corrupting, verdicts=REJECTED)),
    Fault(clocks_jump, Setup(log=disordered, clock=jumping_clock, gap_timeout=PATIENT)),
    Fault(everything_in_turn, Setup(workers=2, evaluations=120)),
    Fault(coordinator_killed_in_mid_submit, FLEET),
    Fault(coordinator_killed_in_mid_batch, FLEET),
    Fault(executors_killed, FLEET),
    Fault(executor_frozen, FLEET),
    Fault(redis_killed_under_a_fleet, FLEET),
    Fault(redis_lost_under_a_fleet, FLEET),
    Fault(postgres_killed_under_a_fleet, FLEET),
    Fault(fleet_everything_in_turn, FLEET),
)
FAULTS = {row.name: row for row in ROWS}
