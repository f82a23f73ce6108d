"""What a search of one scenario comes to, in words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.protocol_model.faults import Fault
from tests.protocol_model.invariants import Invariant
from tests.protocol_model.progress import stuck
from tests.protocol_model.rules import EVERY_RULE, Rules
from tests.protocol_model.scenarios import Scenario
from tests.protocol_model.search import Findings, search


@dataclass(frozen=True, slots=True)
class Verdict:
    """The scenario, how much of it was seen, and the shortest story of each broken invariant."""

    scenario: Scenario
    worlds: int
    is_complete: bool
    seconds: float
    stories: dict[Invariant, list[str]]
    stuck: dict[Invariant, int]

    @property
    def unexpected(self) -> dict[Invariant, list[str]]:
        """The stories that the design does not own up to."""
        known = documented(self.scenario)
        return {broken: story for broken, story in self.stories.items() if broken not in known}

    def __str__(self) -> str:
        cut = "" if self.is_complete else " (cut short)"
        known = len(self.stories) - len(self.unexpected)
        return (
            f"{self.scenario.name}: {self.worlds:,} states{cut} in {self.seconds:.1f} s, "
            f"{len(self.unexpected)} violations, {sum(self.stuck.values())} stuck"
            + ", 1 documented"
            * known
        )


def documented(scenario: Scenario) -> frozenset[Invariant]:
    """Guarantee 8 ends where the grace does: the work of a later executor is paid for again."""
    hurried = Fault.GRACE_TOO_SHORT in scenario.budget
    return frozenset({Invariant.KEPT_ANSWER_AWAITED} if hurried else ())


def examine(
    scenario: Scenario, *, rules: Rules = EVERY_RULE, limit: int, stop_when_broken: bool = False
) -> Verdict:
    """Search a scenario, and look for worlds without a way to the end."""
    findings = search(scenario, rules=rules, limit=limit, stop_when_broken=stop_when_broken)
    without_a_way = stuck(findings)
    stories = findings.broken | {
        invariant: _stuck_story(findings, worlds[0]) for invariant, worlds in without_a_way.items()
    }
    counts = {invariant: len(worlds) for invariant, worlds in without_a_way.items()}
    return Verdict(scenario, len(findings.worlds), findings.is_complete, findings.seconds, stories, counts)


def printed(stories: dict[Invariant, list[str]]) -> str:
    """Print each history in numbered steps, and the invariant it breaks."""
    return "\n".join(line for broken, story in stories.items() for line in _lines(broken, story))


def _lines(broken: Invariant, story: Iterable[str]) -> Iterator[str]:
    yield f"  BROKEN, guarantee {broken}"
    yield from (f"    {number:>2}. {line}" for number, line in enumerate(story, start=1))


def _stuck_story(findings: Findings, at: int) -> list[str]:
    world = findings.catalogue.world(findings.worlds[at])
    entries = ", ".join(map(str, world.stream.entries)) or "nothing"
    place = f"({world.postgres.attempt}, {world.postgres.sequence}) {world.postgres.phase}"
    end = f"From here no way leads on: the row is at {place}, the stream has {entries}"
    return [*findings.story_of(at), end]
