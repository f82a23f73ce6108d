"""A user's Python function as an evaluator, imported from where the batch was submitted.

    def judge(output, expected): ...        # the first is the output, all others go by their names:
    def judge(output, *, case, fields): ... # `expected`, `input`, `case`, `fields`, or any field

It returns whether the output passes, or a score, or a dict with `score`, `passed` and `reason`, of which
one of the first two suffices. A score passes from `threshold` on. See
`executor.python_host.function_server` for the calling convention, and `executor.targets.python` for
exceptions.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from domain.batch_spec import Options
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators.extract import quoted
from executor.options import OptionModel, read_options
from executor.python_host.host import FunctionCall
from executor.python_host.pool import HostPool
from executor.targets.python import FunctionName, Interpreter, pool_of


class PythonEvaluatorOptions(OptionModel):
    """The function, the threshold, and the interpreter."""

    function: FunctionName
    interpreter: Interpreter | None = None
    threshold: float = 0.5


@dataclass(frozen=True, slots=True)
class PythonEvaluator:
    """Scores answers by a function."""

    name: str
    threshold: float
    pool: HostPool

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Call the function with an output."""
        case = judged.case
        fields = {"id": case.id, "input": case.input, "expected": case.expected, **judged.fields}
        returned = await self.pool.call(FunctionCall(judged.output, fields, {"case": asdict(case)}))
        try:
            return p.Score(evaluator=self.name, **self._score_fields(returned.value))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise _invalid_result(returned.value, f"{where}: {first['msg']}") from None

    async def aclose(self) -> None:
        """End the processes the function runs in."""
        await self.pool.aclose()

    def _score_fields(self, value: JsonValue) -> dict[str, Any]:
        match value:
            case bool():
                return {"score": float(value), "passed": value}
            case int() | float():
                return {"score": value, "passed": value >= self.threshold}
            case Mapping() if ("score" in value or "passed" in value) and value.keys() <= _KEYS:
                score = value.get("score", value.get("passed"))
                judged = (
                    self._score_fields(score) if isinstance(score, bool | int | float) else {"score": score}
                )
                return {**judged, **{key: each for key, each in value.items() if each is not None}}
            case _:
                raise _invalid_result(
                    value, "return a bool, a number, or a dict with score, passed and reason"
                )


class PythonEvaluatorType:
    """Creates Python evaluators."""

    needs_expected = False

    def check(self, options: Options) -> None:
        """Refuse what does not name a function; it is imported only where it runs."""
        read_options(PythonEvaluatorOptions, options, of="the python evaluator")

    def placeholders(self, options: Options) -> frozenset[str]:  # noqa: ARG002 - a function takes what it is given
        """Return none: the parameters of a function are known when it is called."""
        return frozenset()

    def make(self, name: str, options: Options, environment: ExecutionEnvironment) -> PythonEvaluator:
        """Make one."""
        read = read_options(PythonEvaluatorOptions, options, of="the python evaluator")
        return PythonEvaluator(name, read.threshold, pool_of(read.function, read.interpreter, environment))


PYTHON = PythonEvaluatorType()
_KEYS = {"score", "passed", "reason"}


def _invalid_result(value: JsonValue, why: str) -> Permanent:
    return Permanent("python", f"the function returned {quoted(str(value))}, which is no judgement: {why}")
