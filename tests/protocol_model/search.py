"""Breadth first through every order of steps, fast enough to be thorough.

A world is one whole number: each part of it has a stretch of bits, and in it the number of that part
in a catalogue. So what an actor sees is a mask, and what it does an addition. Actors are asked once
for each view they meet; after that a step costs a look into a dictionary and a sum.
"""

from array import array
from dataclasses import dataclass, field
from time import process_time
from typing import Any, NamedTuple

from tests.protocol_model.beginnings import cast, first_world
from tests.protocol_model.invariants import Invariant
from tests.protocol_model.moves import Actor, Check, Move
from tests.protocol_model.rules import EVERY_RULE, Rules
from tests.protocol_model.scenarios import Scenario
from tests.protocol_model.world import World

BITS = 16
STRETCH = (1 << BITS) - 1
PLACE = {name: at * BITS for at, name in enumerate(World._fields)}


class Catalogue:
    """Numbers the values that each part of the world takes; the first one is 0."""

    def __init__(self) -> None:
        self._values: dict[str, list[Any]] = {name: [] for name in World._fields}
        self._numbers: dict[str, dict[Any, int]] = {name: {} for name in World._fields}

    def number(self, name: str, value: Any) -> int:
        """Return the number of a value, entering it if it is new."""
        numbers = self._numbers[name]
        number = numbers.setdefault(value, len(numbers))
        if number == len(self._values[name]):
            self._values[name].append(value)
            assert number <= STRETCH
        return number

    def value(self, name: str, world: int) -> Any:
        """Look up one part of a world."""
        return self._values[name][world >> PLACE[name] & STRETCH]

    def world(self, world: int) -> World:
        """Spell a world out."""
        return World(*(self.value(name, world) for name in World._fields))


class KnownMove(NamedTuple):
    """A move in terms of numbers: what to add to the world."""

    story: str
    difference: int
    is_fault: bool
    broken: tuple[Invariant, ...]
    is_judged: bool
    check: Check | None
    after: tuple[Any, ...]


class Player:
    """An actor who remembers what it does in each view it has met."""

    def __init__(self, actor: Actor, catalogue: Catalogue) -> None:
        self._actor = actor
        self._catalogue = catalogue
        self.mask = mask_of(actor.sees)
        self.acts_while_first = mask_of(actor.acts_while_first)
        self.rests_while_first = mask_of(actor.rests_while_first)
        self.known: dict[int, list[KnownMove]] = {}

    def learn(self, view: int) -> list[KnownMove]:
        """Ask the actor, once."""
        parts = tuple(self._catalogue.value(name, view) for name in self._actor.sees)
        moves = [self._known(parts, move) for move in self._actor.moves(*parts)]
        self.known[view] = moves
        return moves

    def _known(self, before: tuple[Any, ...], move: Move) -> KnownMove:
        number, difference = self._catalogue.number, 0
        for name, was, becomes in zip(self._actor.sees, before, move.after, strict=True):
            if was != becomes:
                difference += (number(name, becomes) - number(name, was)) << PLACE[name]
        is_judged = bool(move.broken or move.check)
        return KnownMove(
            move.story, difference, move.is_fault, move.broken, is_judged, move.check, move.after
        )


def mask_of(names: tuple[str, ...]) -> int:
    """Mark the stretches of some parts."""
    return sum(STRETCH << PLACE[name] for name in names)


@dataclass(slots=True)
class Findings:
    """What a search came to."""

    scenario: Scenario
    rules: Rules
    catalogue: Catalogue = field(default_factory=Catalogue)
    worlds: list[int] = field(default_factory=list)
    came_from: "array[int]" = field(default_factory=lambda: array("I"))
    came_by: list[KnownMove | None] = field(default_factory=list)
    sources: "array[int]" = field(default_factory=lambda: array("I"))
    targets: "array[int]" = field(default_factory=lambda: array("I"))
    """Steps that are no faults, from world to world."""
    broken: dict[Invariant, list[str]] = field(default_factory=dict)
    """The shortest story of each broken invariant."""
    is_complete: bool = True
    seconds: float = 0.0
    """Of processor time."""

    def story_of(self, at: int) -> list[str]:
        """Return the moves that led to a world."""
        printed: list[str] = []
        while move := self.came_by[at]:
            printed.append(move.story)
            at = self.came_from[at]
        return printed[::-1]


def search(
    scenario: Scenario, *, rules: Rules = EVERY_RULE, limit: int, stop_when_broken: bool = False
) -> Findings:
    """Visit every world that can come about, up to a limit."""
    started = process_time()
    findings = Findings(scenario, rules)
    _Search(findings, limit).run(stop_when_broken=stop_when_broken)
    findings.seconds = process_time() - started
    return findings


class _Search:
    def __init__(self, findings: Findings, limit: int) -> None:
        self.findings = findings
        self.limit = limit
        catalogue = findings.catalogue
        for name, value in first_world(findings.scenario, findings.rules)._asdict().items():
            catalogue.number(name, value)
        self.players = [Player(actor, catalogue) for actor in cast(findings.scenario, findings.rules)]
        self.numbers = {0: 0}
        findings.worlds.append(0)
        findings.came_from.append(0)
        findings.came_by.append(None)

    def run(self, *, stop_when_broken: bool) -> None:
        """Go on until nothing new turns up; the list of worlds is its own queue."""
        findings, numbers, limit = self.findings, self.numbers, self.limit
        worlds, sources, targets = findings.worlds, findings.sources, findings.targets
        for at, world in enumerate(worlds):
            for move in self._moves(world):
                following = world + move.difference
                number = numbers.get(following)
                if number is None:
                    number = len(worlds)
                    if number >= limit:
                        findings.is_complete = False
                        continue
                    numbers[following] = number
                    worlds.append(following)
                    findings.came_from.append(at)
                    findings.came_by.append(move)
                if not move.is_fault:
                    sources.append(at)
                    targets.append(number)
                if move.is_judged:
                    self._judge(at, world, move)
            if stop_when_broken and findings.broken:
                findings.is_complete = False
                return

    def _moves(self, world: int) -> list[KnownMove]:
        moves: list[KnownMove] = []
        for player in self.players:
            if world & player.acts_while_first:
                continue
            if player.rests_while_first and not world & player.rests_while_first:
                continue
            view = world & player.mask
            known = player.known.get(view)
            moves += player.learn(view) if known is None else known
        return moves

    def _judge(self, at: int, world: int, move: KnownMove) -> None:
        broken = move.broken
        if move.check:
            broken += move.check(self.findings.catalogue.world(world), move.after)
        for invariant in broken:
            if invariant not in self.findings.broken:
                self.findings.broken[invariant] = [*self.findings.story_of(at), move.story]
