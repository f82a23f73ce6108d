"""Evaluators that compare: each is a model of options and one function; what they share is here."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from domain.batch_spec import Options
from domain.template import as_text
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators.extract import Pattern, compile_pattern, find_last, quoted
from executor.options import OptionModel, read_options


class ComparisonVerdict(NamedTuple):
    """Whether an answer passes, and why."""

    passed: bool
    reason: str = ""


class ExtractOptions(OptionModel):
    """Options shared by evaluators that compare texts."""

    extract: Pattern | None = None
    """Cuts what counts out of the output."""
    expected_extract: Pattern | None = None
    """Cuts what counts out of the expected value."""


Model = TypeVar("Model", bound=OptionModel)
Rule = Callable[[Model, ScoringRequest], Awaitable[ComparisonVerdict]]


class NoMatch(Exception):  # noqa: N818 - its text is the reason of a verdict
    """There is nothing to cut out."""


@dataclass(frozen=True, slots=True)
class ComparisonEvaluator(Generic[Model]):
    """One evaluator of a batch."""

    name: str
    options: Model
    rule: Rule[Model]

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Score an answer: 0 or 1."""
        try:
            verdict = await self.rule(self.options, judged)
        except NoMatch as nothing:
            verdict = ComparisonVerdict(passed=False, reason=str(nothing))
        return p.Score(
            evaluator=self.name, score=float(verdict.passed), passed=verdict.passed, reason=verdict.reason
        )

    async def aclose(self) -> None:
        """Leave nothing behind: there is nothing."""


@dataclass(frozen=True, slots=True)
class ComparisonType(Generic[Model]):
    """Creates evaluators of one type."""

    what: str
    model: type[Model]
    rule: Rule[Model]
    needs_expected: bool = True
    wants: Callable[[Model], frozenset[str]] = lambda _: frozenset()
    """Names the fields that a case must have, going by the options."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        self._read(options)

    def placeholders(self, options: Options) -> frozenset[str]:
        """List the fields that every case must have."""
        return self.wants(self._read(options))

    def make(
        self,
        name: str,
        options: Options,
        environment: ExecutionEnvironment,  # noqa: ARG002 - needs none
    ) -> ComparisonEvaluator[Model]:
        """Create the evaluator of a batch."""
        return ComparisonEvaluator(name, self._read(options), self.rule)

    def _read(self, options: Options) -> Model:
        return read_options(self.model, options, of=f"the {self.what} evaluator")


async def output_of(options: ExtractOptions, judged: ScoringRequest) -> str:
    """Extract the part of the output to compare; raises `NoMatch`."""
    return await cut_out(options.extract, judged.output, of="the output")


async def expected_of(options: ExtractOptions, judged: ScoringRequest) -> str:
    """Extract the part of the expected value to compare; raises `Permanent` if there is none."""
    if judged.case.expected is None:
        raise Permanent("no_expected", f"the case {judged.case.id!r} has no expected value to compare with")
    expected = as_text(judged.case.expected)
    try:
        return await cut_out(options.expected_extract, expected, of="the expected value")
    except NoMatch as error:
        # The dataset or the pattern is wrong: no result for the answer.
        raise Permanent("bad_expected", str(error)) from None


async def cut_out(pattern: str | None, text: str, *, of: str) -> str:
    """Cut the last match out, or take all of it where there is no pattern; raises `NoMatch`."""
    if pattern is None:
        return text
    found = await find_last(_compiled(pattern), text)
    if found is None:
        raise NoMatch(f"{quoted(pattern)} does not match {of}: {quoted(text)}")
    return found


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return compile_pattern(pattern)
