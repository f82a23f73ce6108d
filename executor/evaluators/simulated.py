"""An evaluator that only simulates another: it passes every answer but a wrong one of a simulated target.

It calls nothing and costs nothing. `fields` names what the simulated evaluator wants of every case, so a
dry run finds a missing column just as the real run would.
"""

from dataclasses import dataclass

from pydantic import Field

from domain.batch_spec import Options
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, ScoringRequest
from executor.options import OptionModel, read_options
from executor.targets.simulated import WRONG

REASON = "simulated: no evaluator was called"


class SimulatedEvaluatorOptions(OptionModel):
    """The fields that the simulated evaluator requires of every case."""

    fields: list[str] = Field(default_factory=list, max_length=1_000)


@dataclass(frozen=True, slots=True)
class SimulatedEvaluator:
    """Scores by a digest, without a model."""

    name: str

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Score an answer."""
        passed = judged.output != WRONG
        return p.Score(evaluator=self.name, score=float(passed), passed=passed, reason=REASON)

    async def aclose(self) -> None:
        """Release nothing: it holds nothing."""


class SimulatedEvaluatorType:
    """Factory of simulated evaluators."""

    needs_expected = False

    def check(self, options: Options) -> None:
        """Raise `ValueError` for options that make no sense."""
        _read(options)

    def placeholders(self, options: Options) -> frozenset[str]:
        """Return the fields that the simulated evaluator wants."""
        return frozenset(_read(options).fields)

    def make(self, name: str, options: Options, environment: ExecutionEnvironment) -> SimulatedEvaluator:  # noqa: ARG002
        """Create one."""
        _read(options)
        return SimulatedEvaluator(name)


def _read(options: Options) -> SimulatedEvaluatorOptions:
    return read_options(SimulatedEvaluatorOptions, options, of="the simulated evaluator")


SIMULATED = SimulatedEvaluatorType()
