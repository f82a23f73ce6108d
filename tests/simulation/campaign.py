"""Many seeds in a few processes, their results, and what must have occurred at least once."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from tests.proof.outcome import Outcome
from tests.simulation.profiles import Profile, profile_of
from tests.simulation.run import Verdict, simulate
from tests.simulation.world import Harm, Violation

CHUNK = 30
SOMETIMES = (
    *("unreached", "reply lost", "belated", "killed before", "killed after", "crash", "frozen"),
    *("Redis lost whole", "Redis lost in part", "wake-ups lost", "task doubled", "clock set", "polluted"),
    *("answer DUPLICATE", "answer CONFLICT", "answer FENCED", "answer EPOCH", "tail put back"),
    *("claim refused", "compare-and-set lost", "takeover", "opened without a coordinator"),
    *("accepted before", "another window", "window lost", "group advanced", "batch over"),
    *("coordinators overlap", "next: publish", "next: enqueue", "endings published again"),
    *(
        "open: retry",
        "open: lost",
        "open: operator",
        "open: Cancelled",
        "open: TimedOut",
        "ended in flight",
    ),
    *("pause", "resume", "cancel", "retry", "refused", "asked to stop", "task taken over"),
    *("target hung", "asked again", "late answer kept"),
    *("verdict stale", "verdict late", "verdict rejected", "bridged", "not ended, with a reason"),
    *("at last completed", "at last failed", "at last timed_out", "at last cancelled"),
    *("quarantined: conflict", "quarantined: garbage", "quarantined: invalid", "quarantined: mismatch"),
    *("quarantined: illegal", "quarantined: bad_wake_up"),
)
"""What must occur in a few hundred seeds, or they prove little."""
RARELY = ("in a hurry", "quarantined: oversize", "task given back")
"""What needs thousands of seeds to occur."""
ENOUGH_FOR_RARITIES = 3_000


@dataclass(slots=True)
class Failure:
    """A seed that broke an invariant."""

    seed: int
    profile: Profile
    violations: list[Violation]

    def __str__(self) -> str:
        event = "; ".join(f"{harm}: {what}" for harm, what in self.violations[:3])
        return f"seed {self.seed} ({self.profile}): {event}. Again: {again(self.seed)}"


@dataclass(slots=True)
class Campaign:
    """The results of many seeds."""

    runs: Counter[Profile] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Count one run."""
        self.runs[verdict.profile] += 1
        self.seen += verdict.seen
        if verdict.violations:
            self.failures.append(Failure(verdict.seed, verdict.profile, verdict.violations))

    def merge(self, other: "Campaign") -> None:
        """Add the counts of another process."""
        self.runs += other.runs
        self.seen += other.seen
        self.failures += other.failures

    def never_seen(self) -> list[str]:
        """Return what should have occurred, and never did."""
        rarities = RARELY if self.runs.total() >= ENOUGH_FOR_RARITIES else ()
        return [name for name in (*SOMETIMES, *rarities) if not self.seen[name]]


def again(seed: int) -> str:
    """Return the command that runs a seed again."""
    return f"python -m tests.simulation --seed {seed} --trace"


def run_seeds(first: int, count: int) -> Campaign:
    """Run some seeds, one after the other."""
    campaign = Campaign()
    for seed in range(first, first + count):
        campaign.add(_played(seed))
    return campaign


def _played(seed: int) -> Verdict:
    """Run a seed; a run that raises is a run that failed."""
    try:
        return simulate(seed)
    except Exception as error:  # noqa: BLE001 - whatever it was, the other seeds go on, and this one is named
        broken = Violation(Harm.VIOLATION, f"the run itself broke: {error!r}")
        return Verdict(seed, profile_of(seed), [broken], Counter(), [])


def run_campaign(
    seeds: int, *, first: int = 0, jobs: int = 1, progress: Callable[[Campaign], None] | None = None
) -> Campaign:
    """Run many seeds, in several processes if configured."""
    campaign = Campaign()
    for part in _parts(first, seeds, jobs):
        campaign.merge(part)
        if progress:
            progress(campaign)
    campaign.failures.sort(key=lambda failure: failure.seed)
    return campaign


def _parts(first: int, seeds: int, jobs: int) -> Iterator[Campaign]:
    chunks = [(n, min(CHUNK, first + seeds - n)) for n in range(first, first + seeds, CHUNK)]
    if jobs == 1:
        yield from (run_seeds(*chunk) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(run_seeds, *chunk) for chunk in chunks]):
            yield done.result()


def prove(seeds: int, jobs: int) -> list[Outcome]:
    """Run so many seeds, and return a row for each profile of faults."""
    return outcomes(run_campaign(seeds, jobs=jobs))


def outcomes(campaign: Campaign) -> list[Outcome]:
    """Summarise a campaign, a row for each profile of faults."""
    rows = {profile: Outcome(f"simulated: {profile}", campaign.runs[profile]) for profile in Profile}
    for failure in campaign.failures:
        row = rows[failure.profile]
        harms = Counter(violation.harm for violation in failure.violations)
        row.lost += harms[Harm.LOST]
        row.doubled += harms[Harm.DOUBLED]
        row.stuck += harms[Harm.STUCK]
        row.violations += harms[Harm.VIOLATION]
        row.failures.append(str(failure))
    for name in campaign.never_seen():
        rows[Profile.EVERYTHING].violations += 1
        rows[Profile.EVERYTHING].failures.append(f"never happened: {name}")
    return [row for row in rows.values() if row.runs]
