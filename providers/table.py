"""The table of providers: one row each, data only.

A row has a provider's address, the variable of its key, the scope of its rate limits, its rate limit
headers, and the SDK that can call it; without an SDK it has advice instead. `NAME/MODEL` names a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from providers.rate_limit_headers import ANTHROPIC, CEREBRAS, GROQ, NO_HEADERS, OPENAI, RateLimitHeaders


class LimitScope(StrEnum):
    """The scope of a provider's rate limits."""

    ACCOUNT = "account"
    MODEL = "model"
    GROUP = "model group"
    DEPLOYMENT = "deployment"
    REGION = "region"


class Sdk(StrEnum):
    """Whose client a provider is called with."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class Provider:
    """One row."""

    name: str
    title: str
    base_url: str
    """The address; empty if every customer has another."""
    key_variable: str
    """The environment variable with the key; empty where there is none."""
    scope: frozenset[LimitScope]
    sdk: Sdk | None = Sdk.OPENAI
    limit_headers: RateLimitHeaders = NO_HEADERS
    base_url_variable: str = ""
    instead: str = ""
    """Advice where no SDK can call it by name."""
    groups: tuple[str, ...] = ()
    """Patterns of models that share one limit; the first that fits counts."""
    stream_usage: bool = True
    """Whether token counts must be requested for a stream."""
    takes_schema: bool = True
    """Whether the form of a reply can be prescribed, and not only that it be JSON."""


_ACCOUNT = frozenset({LimitScope.ACCOUNT})
_MODEL = frozenset({LimitScope.ACCOUNT, LimitScope.MODEL})
_CLAUDE = (
    "claude-opus-4*", "claude-sonnet-4*", "claude-haiku-4*",
    "claude-opus-5*", "claude-sonnet-5*", "claude-haiku-5*", "claude-haiku-*", "claude-fable-*",
    "claude-mythos-*", "claude-3-opus*", "claude-3-7-sonnet*", "claude-3-5-sonnet*", "claude-3-5-haiku*",
    "claude-3-haiku*",
)  # fmt: skip
_AZURE = (
    "every Azure deployment has an address of its own: write {type: openai, model: DEPLOYMENT, "
    "base_url: https://RESOURCE.openai.azure.com/openai/v1, key_variable: AZURE_OPENAI_API_KEY}"
)
_BEDROCK = (
    "AWS Bedrock takes signed requests, which are not made here yet: put a gateway that speaks OpenAI's "
    "API before it, and write {type: openai, model: MODEL, base_url: GATEWAY}"
)
_REPLICATE = (
    "Replicate has an API of its own, which is not spoken here yet: write {type: http, url: "
    "https://api.replicate.com/v1/models/MODEL/predictions, …} or a python function"
)
_LEPTON = (
    "every Lepton endpoint has an address of its own: write {type: openai, model: MODEL, "
    "base_url: https://ENDPOINT/api/v1, key_variable: LEPTON_API_TOKEN}"
)

ROWS: tuple[Provider, ...] = (
    Provider("anthropic", "Anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY",
             frozenset({LimitScope.ACCOUNT, LimitScope.GROUP}), Sdk.ANTHROPIC, ANTHROPIC,
             "ANTHROPIC_BASE_URL", groups=_CLAUDE),
    Provider("openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", _MODEL, Sdk.OPENAI, OPENAI,
             "OPENAI_BASE_URL"),
    Provider("azure", "Azure OpenAI", "", "AZURE_OPENAI_API_KEY", frozenset({LimitScope.DEPLOYMENT}), None,
             OPENAI, instead=_AZURE),
    Provider("bedrock", "AWS Bedrock", "", "AWS_BEARER_TOKEN_BEDROCK",
             frozenset({LimitScope.ACCOUNT, LimitScope.MODEL, LimitScope.REGION}), None, instead=_BEDROCK),
    Provider("gemini", "Google Gemini", "https://generativelanguage.googleapis.com/v1beta/openai",
             "GEMINI_API_KEY", _MODEL),
    Provider("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", _MODEL, limit_headers=OPENAI),
    Provider("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", _MODEL, limit_headers=GROQ),
    Provider("deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", _ACCOUNT,
             takes_schema=False),
    Provider("qwen", "Qwen", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY",
             _ACCOUNT, takes_schema=False),
    Provider("ollama", "Ollama", "http://127.0.0.1:11434/v1", "", frozenset(),
             base_url_variable="OLLAMA_BASE_URL"),
    Provider("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY",
             _ACCOUNT, limit_headers=OPENAI),
    Provider("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", _ACCOUNT,
             stream_usage=False),
    Provider("together", "Together AI", "https://api.together.xyz/v1", "TOGETHER_API_KEY", _ACCOUNT),
    Provider("lepton", "Lepton", "", "LEPTON_API_TOKEN", _ACCOUNT, None, instead=_LEPTON),
    Provider("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", _MODEL,
             limit_headers=CEREBRAS),
    Provider("replicate", "Replicate", "https://api.replicate.com/v1", "REPLICATE_API_TOKEN", _ACCOUNT,
             None, instead=_REPLICATE),
    Provider("baseten", "Baseten", "https://inference.baseten.co/v1", "BASETEN_API_KEY", _ACCOUNT),
)  # fmt: skip

PROVIDERS: Mapping[str, Provider] = {row.name: row for row in ROWS}


FAMILIES = (
    (("gpt-", "chatgpt-", "o1", "o3", "o4"), "openai"),
    (("claude",), "anthropic"),
    (("gemini", "gemma"), "gemini"),
    (("mistral", "ministral", "codestral", "magistral", "pixtral"), "mistral"),
    (("grok",), "xai"),
    (("deepseek",), "deepseek"),
    (("qwen",), "qwen"),
    (("llama",), "groq"),
)
"""Prefixes of model names, and a provider of each."""


def suggest_model(text: str) -> str | None:
    """Return `PROVIDER/MODEL` for the bare name of a model, or for a provider that is misspelt."""
    for beginnings, provider in FAMILIES:
        if "/" not in text and text.lower().startswith(beginnings):
            return f"{provider}/{text}"
    name, slash, model = text.partition("/")
    near = get_close_matches(name.lower(), PROVIDERS, n=1) if slash and model else []
    return f"{near[0]}/{model}" if near else None


def split_model(text: str) -> tuple[str, str] | None:
    """Split `PROVIDER/MODEL`; None if no provider is named. Model names may contain slashes."""
    name, slash, model = text.partition("/")
    return (name, model) if slash and model and name in PROVIDERS else None
