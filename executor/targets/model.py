"""Models of providers as targets: `anthropic/claude-…`, `openai/gpt-…`, `groq/llama-…`.

Each provider of the table is a target type. Earlier turns of a conversation become messages; the text of
the model is the answer, with its tokens and its cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import httpx2
from pydantic import Field, JsonValue, field_validator

from domain.batch_spec import Options
from executor.contract import ExecutionEnvironment, Permanent, TargetReply, TargetRequest
from executor.options import OptionModel, read_options
from executor.targets.answers import reply
from executor.targets.headers import check_headers
from executor.targets.model_calls import ModelCaller, make_caller
from executor.targets.model_faults import garbled
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
from executor.targets.telemetry import counting_errors
from providers.endpoint import ModelEndpoint, endpoint_of
from providers.prices import cost_of
from providers.requests import (
    InvalidReply,
    ModelAnswer,
    answer_of,
    must_stream,
    request_of,
    tokens_guessed,
)
from providers.table import PROVIDERS, Provider
from taskqueue.budget.estimates import RequestSize

Message = dict[Literal["role", "content"], str]


class ModelOptions(OptionModel):
    """The model, its system prompt and parameters, and its address if not the provider's."""

    model: ModelName
    system: str | None = Field(default=None, max_length=500_000)
    messages: list[Message] = Field(default_factory=list, max_length=1_000)
    """Messages before the prompt, such as examples."""
    parameters: Parameters = Field(default_factory=dict)
    """Parameters of the provider's API: temperature, max_tokens and so on."""
    stream: bool = False
    account: Account | None = None
    """A name for the account, so that several keys share its rate limits, or one key is known by it."""
    key_variable: KeyVariable | None = None
    base_url: BaseUrl | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    prices: PriceOptions | None = None

    @field_validator("messages")
    @classmethod
    def _have_roles(cls, messages: list[Message]) -> list[Message]:
        for each in messages:
            if each.keys() != {"role", "content"} or each["role"] not in ("user", "assistant"):
                raise ValueError(
                    "each message is {role: user, content: …} or {role: assistant, content: …}"
                )
        return messages

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        check_headers(headers)
        return headers


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model that answers."""

    caller: ModelCaller
    options: Mapping[str, JsonValue]

    async def call(self, question: TargetRequest) -> TargetReply:
        """Call the model once."""
        access = self.caller.access
        params = request_of(access.provider.name, self.options, question.prompt, question.history)
        stream = bool(self.options.get("stream")) or must_stream(params)
        called = await self.caller.call(params, timeout=question.timeout, stream=stream)
        answered = read_answer(called.message, access)
        answer = reply(
            answered.output,
            cost_usd=cost_of(answered.usage, self.caller.price),
            latency_ms=called.latency_ms,
        ).answer
        return TargetReply(replace(answer, usage=answered.usage), limits=called.limits)

    def request_size(self, request: TargetRequest | None) -> RequestSize:
        """Measure a request: its texts, the longest answer, the prices."""
        name = self.caller.access.provider.name
        if request is None:
            return replace(self.caller.size_of(request_of(name, self.options, "")), characters=0)
        return self.caller.size_of(request_of(name, self.options, request.prompt, request.history))

    async def warm_up(self) -> None:
        """Be ready to call at once."""
        await self.caller.open()

    async def aclose(self) -> None:
        """Close all connections."""
        await self.caller.aclose()


@dataclass(frozen=True, slots=True)
class ModelType:
    """Creates targets for the models of one provider."""

    provider: Provider
    transport: httpx2.AsyncBaseTransport | None = None
    """Instead of the network."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense, and what can't be called from here."""
        self._read(options)
        check_callable(self.provider)

    def make(self, options: Options, environment: ExecutionEnvironment) -> ModelTarget:
        """Make one."""
        self.check(options)
        read = self._read(options)
        return ModelTarget(
            make_caller(self.provider.name, read, environment, transport=self.transport), read
        )

    def lane(self, options: Options, environment: ExecutionEnvironment) -> str | None:
        """Return the lane of the model's calls."""
        return endpoint_of(self.provider.name, options, environment.environ).lane

    def tokens(self, options: Options) -> float:
        """Guess what a call takes."""
        return tokens_guessed(options)

    def _read(self, options: Options) -> Options:
        refuse_keys(options, self.provider.name)
        read = read_options(ModelOptions, options, of=f"the {self.provider.name} target")
        return read.model_dump(mode="json", exclude_none=True)


def read_answer(message: object, access: ModelEndpoint) -> ModelAnswer:
    """Parse the reply of a model; raises a `CallFault` if it has no answer of its own."""
    with counting_errors(access.provider.name):
        return _read_answer(message, access)


def _read_answer(message: object, access: ModelEndpoint) -> ModelAnswer:
    try:
        answered = answer_of(message)
    except InvalidReply as error:
        raise garbled(access, str(error)) from None
    if answered.is_filtered:
        raise Permanent(
            "content_filter", f"{access.provider.title} stopped the answer ({answered.stop_reason})"
        )
    return answered


MODELS: Mapping[str, ModelType] = {name: ModelType(provider) for name, provider in PROVIDERS.items()}
