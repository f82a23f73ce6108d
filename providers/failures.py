"""What it means that a provider did not answer, and what whoever reads of it can do: a pure table.

    429, 529                        asked too much: wait, nothing is charged
    408, 409, 5xx, no connection    nobody there, or something is broken there
    a reply that is none            may go well next time
    400, 401, 403, 404, 413, 422    will not get better; 404 from an address that is not the provider's
                                    own, without a word about a model, means the address

An error that comes in the middle of a stream has no status any more; its type stands for one. What the
provider says is quoted where it can't hold a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from eventlog.redaction import redact_head
from providers.endpoint import ModelEndpoint

QUOTE = 300
OVERLOAD_WAIT = timedelta(seconds=5)
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TOO_LONG = (
    "prompt is too long", "context_length", "context length", "maximum context", "context window",
    "string_above_max_length", "too many tokens", "reduce the length",
)  # fmt: skip
_FILTERED = ("content_filter", "content_policy", "content filtering", "responsibleai")
_NO_MONEY = ("insufficient_quota", "credit balance", "insufficient balance", "exceeded your current quota")


class ErrorClass(StrEnum):
    """What is to be done about a failure."""

    RATE_LIMITED = "rate_limited"
    UNREACHABLE = "unreachable"
    TRANSIENT = "transient"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True)
class ProviderError:
    """What a provider said instead of an answer."""

    status: int
    type: str = ""
    code: str = ""
    message: str = ""

    @property
    def means(self) -> int:
        """The status that it has, or would have had at the beginning of a stream."""
        if self.status >= 400:
            return self.status
        return _STATUS_OF_TYPE.get(self.type) or _STATUS_OF_TYPE.get(self.code) or self.status

    def speaks_of(self, words: tuple[str, ...]) -> bool:
        """Whether one of these is in what was said."""
        said = f"{self.type} {self.code} {self.message}".lower()
        return any(word in said for word in words)


@dataclass(frozen=True, slots=True)
class ClassifiedError:
    """What a refusal means."""

    of: ErrorClass
    kind: str
    message: str
    retry_after: timedelta | None = None


def refusal_of(status: int, body: object) -> ProviderError:
    """Read the body of a refusal, whichever of the usual forms it has."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return ProviderError(status, message=str(error or ""))
    said = {name: str(error.get(name) or "") for name in ("type", "code", "message")}
    return ProviderError(status, **said)


def failure_of(
    refusal: ProviderError, access: ModelEndpoint, *, retry_after: timedelta | None = None
) -> ClassifiedError:
    """Say what a refusal means, and what to do about it."""
    status, told = refusal.means, _told(refusal)
    if status in (402, 429) and refusal.speaks_of(_NO_MONEY):
        return ClassifiedError(
            ErrorClass.PERMANENT, "quota", f"{access.provider.title} wants to be paid first{told}"
        )
    if status in (429, 529):
        wait = retry_after or (OVERLOAD_WAIT if status == 529 else None)
        return ClassifiedError(
            ErrorClass.RATE_LIMITED, "rate_limited", f"{_answered(status, access)}{told}", wait
        )
    if status in (408, 409) or status >= 500:
        return ClassifiedError(
            ErrorClass.UNREACHABLE, f"http_{status}", f"{_answered(status, access)}{told}"
        )
    if status < 400:
        return ClassifiedError(
            ErrorClass.TRANSIENT, "invalid_response", f"{access.provider.title} broke off{told}"
        )
    return _permanent(refusal, access, told)


def _permanent(refusal: ProviderError, access: ModelEndpoint, told: str) -> ClassifiedError:
    title, variable = access.provider.title, access.key_variable
    match refusal.means:
        case 401:  # what is said here may repeat the key
            kind, advice = (
                "authentication",
                f"the key in {variable} was refused by {title}: is it whole, and still valid?",
            )
        case 402:
            kind, advice = "quota", f"{title} wants to be paid first{told}"
        case 403:
            kind, advice = (
                "permission",
                f"the key in {variable} may not use {access.model!r} at {title}{told}",
            )
        case 404 | 405 if _is_elsewhere(refusal, access):
            kind = "wrong_base_url"
            setting = access.provider.base_url_variable
            named = f"`base_url` and {setting}" if setting else "`base_url`"
            advice = f"{access.place} answered {refusal.means}, no API of {title}: check {named}{told}"
        case 404:
            kind = "model_not_found"
            advice = f"there is no model {access.model!r} at {access.place}: check its name{told}"
        case 413:
            kind, advice = _too_long(access, told)
        case _ if refusal.speaks_of(_TOO_LONG):
            kind, advice = _too_long(access, told)
        case _ if refusal.speaks_of(_FILTERED):
            kind, advice = "content_filter", f"{title} will not answer this{told}"
        case _ if refusal.speaks_of(_NO_MONEY):
            kind, advice = "quota", f"{title} wants to be paid first{told}"
        case status:
            kind, advice = "invalid_request", f"{_answered(status, access)}: check the parameters{told}"
    return ClassifiedError(ErrorClass.PERMANENT, kind, advice)


def _is_elsewhere(refusal: ProviderError, access: ModelEndpoint) -> bool:
    """Whether a "not found" means the address: it is not the provider's own, and no model is spoken of."""
    return access.base_url != access.provider.base_url and not refusal.speaks_of(
        ("model", access.model.lower())
    )


def _too_long(access: ModelEndpoint, told: str) -> tuple[str, str]:
    advice = f"the prompt is too long for {access.model}: shorten it, or take a model with a larger context"
    return "prompt_too_long", advice + told


def _answered(status: int, access: ModelEndpoint) -> str:
    return f"{access.provider.title} answered {status}"


def _told(refusal: ProviderError) -> str:
    said = redact_head(refusal.message.strip(), QUOTE)
    return f" ({said})" if said else ""
