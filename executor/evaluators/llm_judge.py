"""The `llm_judge` evaluator: a model scores an answer by a rubric, and gives a reason.

    evaluators:
      - type: llm_judge
        model: anthropic/claude-sonnet-5
        rubric: "The question was {input}. Is {output} a polite answer?"

The provider enforces the form of the verdict: a tool that must be used, or a schema. The answer may attempt
prompt injection; it is quoted between tags that it can't know, as data.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import httpx2
from pydantic import Field, ValidationInfo, field_validator

from domain.batch_spec import Options
from domain.template import UnknownField, placeholders
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators.llm_verdict import Scale, read_verdict, request_of_judge
from executor.options import OptionModel, read_options
from executor.targets.model import read_answer
from executor.targets.model_calls import ModelCaller, make_caller
from executor.targets.model_options import (
    Account,
    BaseUrl,
    KeyVariable,
    ModelName,
    Parameters,
    PriceOptions,
    check_callable,
    refuse_keys,
)
from providers.clients import LONGEST_CALL
from providers.endpoint import endpoint_of
from providers.prices import cost_of
from providers.requests import request_of, tokens_guessed
from providers.table import PROVIDERS, split_model
from taskqueue.budget.estimates import RequestSize

_OF = "the llm_judge evaluator"


class JudgeOptions(OptionModel):
    """The model, the rubric, the scale and the threshold."""

    model: ModelName
    rubric: str = Field(min_length=1, max_length=100_000)
    scale: tuple[float, float] = (0.0, 1.0)
    threshold: float | None = None
    """On the scale; without it, the middle."""
    system: str | None = Field(default=None, max_length=100_000)
    parameters: Parameters = Field(default_factory=dict)
    account: Account | None = None
    key_variable: KeyVariable | None = None
    base_url: BaseUrl | None = None
    prices: PriceOptions | None = None

    @field_validator("model")
    @classmethod
    def _names_a_provider(cls, model: str) -> str:
        named = split_model(model)
        if named is None:
            raise ValueError(f"write PROVIDER/MODEL, with one of these providers: {', '.join(PROVIDERS)}")
        check_callable(PROVIDERS[named[0]])
        return model

    @field_validator("scale")
    @classmethod
    def _goes_up(cls, scale: tuple[float, float]) -> tuple[float, float]:
        if scale[0] >= scale[1]:
            raise ValueError("the first number must be below the second")
        return scale

    @field_validator("threshold")
    @classmethod
    def _is_on_the_scale(cls, threshold: float | None, info: ValidationInfo) -> float | None:
        low, high = info.data.get("scale", (-inf, inf))
        if threshold is not None and not low <= threshold <= high:
            raise ValueError(f"{threshold:g} is not on the scale from {low:g} to {high:g}")
        return threshold

    @property
    def provider(self) -> str:
        """The model that is called."""
        return self.model.partition("/")[0]

    @property
    def call(self) -> dict[str, Any]:
        """The options of the call, as those of a target."""
        named = self.model_dump(mode="json", exclude_none=True, exclude={"rubric", "scale", "threshold"})
        return {**named, "model": self.model.partition("/")[2]}

    @property
    def scored(self) -> Scale:
        """The scale of the score, and the threshold."""
        low, high = self.scale
        return Scale(low, high, (low + high) / 2 if self.threshold is None else self.threshold)


@dataclass(frozen=True, slots=True)
class LlmJudge:
    """Scores the answers of a batch by a model."""

    name: str
    options: JudgeOptions
    caller: ModelCaller

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Score an answer by one call."""
        options, access = self.options, self.caller.access
        params = self._params(judged)
        called = await self.caller.call(params, timeout=LONGEST_CALL)
        if called.limits:
            judged.on_rate_limits(called.limits)
        answered = read_answer(called.message, access)
        verdict = read_verdict(called.message, options.scored)
        return p.Score(
            evaluator=self.name,
            score=verdict.score,
            passed=verdict.passed,
            reason=verdict.reason,
            usage=answered.usage,
            cost_usd=cost_of(answered.usage, self.caller.price),
        )

    def _params(self, judged: ScoringRequest) -> dict[str, Any]:
        options, access = self.options, self.caller.access
        fields = {"id": judged.case.id, "input": judged.case.input, "expected": judged.case.expected}
        fields |= dict(judged.fields)
        try:
            return request_of_judge(
                access.provider,
                options.call,
                rubric=options.rubric,
                scale=options.scored,
                fields=fields,
                output=judged.output,
            )
        except UnknownField as error:
            raise Permanent("template", f"the rubric needs {error.name!r}, and the case has none") from None

    def request_size(self, request: ScoringRequest | None) -> RequestSize:
        """Measure a request: its texts, the longest verdict, the prices."""
        if request is None:
            call = request_of(self.caller.access.provider.name, self.options.call, "")
            return replace(self.caller.size_of(call), characters=0)
        return self.caller.size_of(self._params(request))

    async def warm_up(self) -> None:
        """Be ready to call at once."""
        await self.caller.open()

    async def aclose(self) -> None:
        """Close all connections."""
        await self.caller.aclose()


@dataclass(frozen=True, slots=True)
class LlmJudgeType:
    """Creates evaluators that call models."""

    needs_expected: bool = False
    default_timeout: float = LONGEST_CALL
    """The deadline is that of the call: a shorter one would pay for the call and lose it."""
    transport: httpx2.AsyncBaseTransport | None = None
    """Instead of the network."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense, and what can't be called from here."""
        _read(options)

    def placeholders(self, options: Options) -> frozenset[str]:
        """List the fields that the rubric names, without the output."""
        return placeholders(_read(options).rubric) - {"output"}

    def make(self, name: str, options: Options, environment: ExecutionEnvironment) -> LlmJudge:
        """Make one."""
        read = _read(options)
        caller = make_caller(read.provider, read.call, environment, transport=self.transport)
        return LlmJudge(name, read, caller)

    def lane(self, options: Options, environment: ExecutionEnvironment) -> str | None:
        """Return the lane of the judging model's calls."""
        read = _read(options)
        return endpoint_of(read.provider, read.call, environment.environ).lane

    def tokens(self, options: Options) -> float:
        """Guess what a call takes: the rubric is sent each time, and a verdict is short."""
        return tokens_guessed({**options, "messages": options.get("rubric")})


def _read(options: Options) -> JudgeOptions:
    named = split_model(str(options.get("model")))
    refuse_keys(options, named[0] if named else "openai")
    return read_options(JudgeOptions, options, of=_OF)


LLM_JUDGE = LlmJudgeType()
