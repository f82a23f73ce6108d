"""A plan's evaluations, one after the other: case by case, variant by variant, repetition by repetition.

Every row is checked when its turn comes. The submitter streams them into one transaction, so a bad row at
the very end leaves nothing behind, and nothing is ever held whole.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from pydantic_core import to_json

from coordinator.submission import NewEvaluation
from domain.batch_spec import Variant
from eventlog import payloads as p
from eventlog.codec import MAX_EVENT_BYTES
from scoreline.command_error import CommandError
from scoreline.submit.cache_key import cache_key
from scoreline.submit.case_requirements import CaseRequirements, fields_of
from scoreline.submit.datasets.cases import DatasetRow
from scoreline.submit.datasets.errors import RowError, Unfit
from scoreline.submit.datasets.sources import place_of, source_rows
from scoreline.submit.group_fields import GroupFieldReader, may_have_group_fields
from scoreline.submit.groups import CaseLinks, DisjointGroups, EvaluationNumbering, SerialLinker
from scoreline.submit.recorded_answers import Answers, recorded_answers
from scoreline.submit.spec.plan import Plan

_ROOM = 64 * 1024
"""What an opening event needs besides its case and its answer."""


@asynccontextmanager
async def prepared(plan: Plan, *, postgres_url: str | None = None) -> "AsyncIterator[Submission]":
    """Open the inputs of a plan's evaluations; raises `CommandError` for errors known in advance."""
    with ExitStack() as stack:
        answers = {
            number: stack.enter_context(recorded_answers(recorded, plan.source))
            for number, recorded in plan.recorded.items()
        }
        if not plan.repetitions_given and answers:
            most = max(each.most for each in answers.values())
            plan = plan.with_spec(replace(plan.spec, repetitions=most))
        ties = await _ties(plan, postgres_url)
        if ties is not None and plan.spec.batch_api:
            raise CommandError(
                "Cases of this dataset wait for each other, and a provider batch asks all at once: "
                "leave --batch-api out, or the serial groups."
            )
        yield Submission(plan, answers, ties, postgres_url)


async def evaluations(
    plan: Plan, *, postgres_url: str | None = None
) -> AsyncGenerator[NewEvaluation, None]:
    """Yield a plan's evaluations, without the rest of the submission."""
    async with prepared(plan, postgres_url=postgres_url) as submission:
        async for evaluation in submission.evaluations():
            yield evaluation


@dataclass(frozen=True, slots=True)
class Submission:
    """A plan that is ready to be submitted, its repetitions settled."""

    plan: Plan
    _answers: dict[int, Answers]
    """By target."""
    _ties: DisjointGroups | None
    """None where no case is tied to another."""
    _postgres_url: str | None

    async def evaluations(self) -> AsyncGenerator[NewEvaluation, None]:
        """Make the evaluations; raises `RowError` for the first case that can't be one."""
        path, unit = place_of(self.plan.source)
        making = _Making(self)
        async with aclosing(_chosen(self.plan, self._postgres_url)) as rows:
            async for row in rows:
                try:
                    for evaluation in making.next(row):
                        yield evaluation
                except Unfit as error:
                    raise RowError(path, row.line, str(error), unit=unit) from None
        if making.cases == 0:
            raise CommandError(_no_cases(self.plan, path))


class _Making:
    """Makes the evaluations of each case in turn."""

    def __init__(self, submission: Submission) -> None:
        batch = submission.plan.spec
        self.cases = 0
        self._plan, self._answers = submission.plan, submission._answers  # noqa: SLF001 - one module, one mind
        self._variants = batch.variants
        self._grid = EvaluationNumbering(len(batch.targets), len(batch.prompts), batch.repetitions)
        self._demands = CaseRequirements.of(batch)
        ties = submission._ties  # noqa: SLF001 - as above
        self._reading = None if ties is None else GroupFieldReader(self._demands.prompts)
        self._sequencing = SerialLinker(ties or DisjointGroups())

    def next(self, row: DatasetRow) -> Iterator[NewEvaluation]:
        """Make all evaluations of a case; raises `Unfit`."""
        self.cases += 1
        self._demands.check(row.case, stored=self._reading.stored if self._reading else ())
        links = None
        if self._reading:
            links = self._sequencing.next(self.cases, self._reading.next(row.case))
        for variant in self._variants:
            for repetition in range(1, self._grid.repetitions + 1):
                yield self._made(row, variant, repetition, links)

    def _made(
        self, row: DatasetRow, variant: Variant, repetition: int, links: CaseLinks | None
    ) -> NewEvaluation:
        answer = self._answer(row, variant, repetition)
        place = links.place(self._grid, variant.number, repetition) if links else None
        # What depends on answers that are not there yet can't be looked up beforehand.
        is_known = answer is not None or (place is not None and bool(place.recalls))
        key = None
        if self._plan.cache and not is_known:
            fields, workdir = fields_of(row.case), self._plan.spec.workdir
            key = cache_key(variant, row.case, fields, repetition=repetition, workdir=workdir)
        return NewEvaluation(row.case, variant.number, repetition, answer, key, place)

    def _answer(self, row: DatasetRow, variant: Variant, repetition: int) -> p.Answer | None:
        recorded = self._answers.get(variant.number % self._grid.targets)
        if recorded is None:
            return None
        output = recorded.output(row, repetition)
        _refuse_oversize(row.case, output)
        return p.Answer(output=output)


def _refuse_oversize(case: p.Case, output: str) -> None:
    """Refuse a case that does not fit into one event together with its answer."""
    if len(output) < 64 * 1024:  # six bytes a character at most, and half of an event for the case
        return
    size = len(to_json(case)) + len(to_json(output))
    if size > MAX_EVENT_BYTES - _ROOM:
        raise Unfit(
            f"the case and its recorded answer take {size // 1024} kB together, too much for one event"
        )


async def _chosen(plan: Plan, postgres_url: str | None) -> AsyncGenerator[DatasetRow, None]:
    """Read the rows that are asked for: by tag, and the first so many of them."""
    count, wanted = 0, frozenset(plan.only_tagged)
    async with aclosing(source_rows(plan.source, postgres_url=postgres_url)) as rows:
        async for row in rows:
            if wanted and wanted.isdisjoint(row.tags):
                continue
            yield row
            count += 1
            if count == plan.limit:
                return


async def _ties(plan: Plan, postgres_url: str | None) -> DisjointGroups | None:
    """Read the dataset for ties that meet, if it may have any."""
    if not await may_have_group_fields(plan.source, postgres_url=postgres_url):
        return None
    path, unit = place_of(plan.source)
    ties, reading = DisjointGroups(), GroupFieldReader(CaseRequirements.of(plan.spec).prompts)
    async with aclosing(_chosen(plan, postgres_url)) as rows:
        async for row in rows:
            try:
                ties.join(reading.next(row.case).keys)
            except Unfit as error:
                raise RowError(path, row.line, str(error), unit=unit) from None
    return ties


def _no_cases(plan: Plan, path: str) -> str:
    if not plan.only_tagged:
        return f"{path}: there is not one case in it."
    return f"{path}: no case has the tag {' or '.join(map(repr, plan.only_tagged))}."
