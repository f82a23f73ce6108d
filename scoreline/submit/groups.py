"""Serial groups: which evaluation follows which, and what it recalls.

Cases that share a tie form a group, and groups that share a case are one. Whether two groups will ever meet
is known only at the end, so a dataset that has marks is read twice: first for the ties that meet, then for
the evaluations. What is kept of the first reading is no more than these ties.

A group exists once for each variant and repetition. As every case has all of them, places in the submission
follow from the number of the case, and it is enough to remember cases.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.submission import Recall, SerialPlace
from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.group_fields import GroupFields, GroupKey, refuse_too_many

MAX_TURNS = 1_000
"""Turns of a conversation: each is linked to all before it."""


class DisjointGroups:
    """Which ties have met, as far as was read: sets of keys, each with one that stands for all."""

    def __init__(self) -> None:
        self._towards: dict[GroupKey, GroupKey] = {}

    def join(self, keys: Sequence[GroupKey]) -> None:
        """Make one group of all that a case is tied to; raises `Unfit` for more than are allowed."""
        for key in keys[1:]:
            one, other = self.group_of(keys[0]), self.group_of(key)
            if one != other:
                self._towards[other] = one
                refuse_too_many(len(self._towards))

    def group_of(self, key: GroupKey) -> GroupKey:
        """Find the key that stands for a group."""
        while (towards := self._towards.get(key)) is not None:
            further = self._towards.get(towards)
            if further is not None:
                self._towards[key] = further  # path halving
            key = towards
        return key


@dataclass(frozen=True, slots=True)
class EvaluationNumbering:
    """How the evaluations of a batch are numbered: case by case, then by variant, then by repetition."""

    targets: int
    prompts: int
    repetitions: int

    def number(self, case: int, variant: int, repetition: int) -> int:
        """Give an evaluation's place in the submission; all count from 1 but variants, from 0."""
        variants = self.targets * self.prompts
        return ((case - 1) * variants + variant) * self.repetitions + repetition


@dataclass(frozen=True, slots=True)
class CaseLinks:
    """How one case is linked to earlier ones, by their numbers."""

    follows: int
    turns: tuple[int, ...]
    """Earlier turns of its conversation."""
    stored: tuple[dict[str, int], ...]
    """For each prompt, the names it uses and who stored them last."""

    def place(self, grid: EvaluationNumbering, variant: int, repetition: int) -> SerialPlace:
        """Return the serial place of one of the case's evaluations."""

        def number(case: int) -> int:
            return grid.number(case, variant, repetition)

        used = self.stored[variant // grid.targets] if self.stored else {}
        # Stored outputs first: the prompts of earlier turns may use them, and are rendered again in order.
        recalls = [Recall(number(case), name) for name, case in sorted(used.items())]
        recalls += [Recall(number(case)) for case in self.turns]
        return SerialPlace(number(self.follows), tuple(recalls))


class SerialLinker:
    """CaseLinks cases in the order of the dataset, once it is known which ties meet."""

    def __init__(self, ties: DisjointGroups) -> None:
        self._ties = ties
        self._last: dict[GroupKey, int] = {}
        self._turns: defaultdict[str, list[int]] = defaultdict(list)
        self._stored: dict[str, int] = {}

    def next(self, case: int, marks: GroupFields) -> CaseLinks | None:
        """Link a case; None for one that stands alone or is the first of its group; raises `Unfit`."""
        keys = marks.keys
        if not keys:
            return None
        group = self._ties.group_of(keys[0])
        links = self._linked(self._last.get(group), marks)
        self._last[group] = case
        refuse_too_many(len(self._last))
        if marks.conversation is not None:
            self._add_turn(marks.conversation, case)
        if marks.stores is not None:
            self._stored[marks.stores] = case
        return links

    def _add_turn(self, conversation: str, case: int) -> None:
        turns = self._turns[conversation]
        if len(turns) == MAX_TURNS:
            raise Unfit(f"the conversation {conversation!r} has more than {MAX_TURNS:,} turns: split it")
        turns.append(case)

    def _linked(self, previous: int | None, marks: GroupFields) -> CaseLinks | None:
        if previous is None:
            return None
        turns = () if marks.conversation is None else tuple(self._turns[marks.conversation])
        stored = tuple({name: self._stored[name] for name in names} for names in marks.uses)
        return CaseLinks(previous, turns, stored)
