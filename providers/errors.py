"""The classification of provider errors, with advice for the user: a pure table.

    429                             rate limited: wait, no retry is used
    529                             overloaded: wait, no retry is used
    408, 409, 5xx, no connection    the provider is unreachable or broken
    an invalid reply                transient
    400, 401, 403, 404, 413, 422    permanent; a 404 from an address other than the provider's own that does
                                    not mention a model means a wrong address

An error in the middle of a stream has no status; its type stands for one. The provider's message is quoted
where it can't contain a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from eventlog.redaction import redact_head
from providers.endpoint import ModelEndpoint

QUOTE = 300
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
_NO_CREDIT = ("insufficient_quota", "credit balance", "insufficient balance", "exceeded your current quota")


class ErrorClass(StrEnum):
    """How the executor reacts to an error."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    TRANSIENT = "transient"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True)
class ProviderError:
    """An error returned by a provider."""

    status: int
    type: str = ""
    code: str = ""
    message: str = ""

    @property
    def effective_status(self) -> int:
        """The status, or for an error within a stream the status that its type stands for."""
        if self.status >= 400:
            return self.status
        return _STATUS_OF_TYPE.get(self.type) or _STATUS_OF_TYPE.get(self.code) or self.status

    def mentions(self, words: tuple[str, ...]) -> bool:
        """Whether the error contains one of these words."""
        text = f"{self.type} {self.code} {self.message}".lower()
        return any(word in text for word in words)


@dataclass(frozen=True, slots=True)
class ClassifiedError:
    """The class of an error, with a message for the user."""

    of: ErrorClass
    kind: str
    message: str
    retry_after: timedelta | None = None


def parse_error(status: int, body: object) -> ProviderError:
    """Parse the body of an error in any of the usual forms."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return ProviderError(status, message=str(error or ""))
    fields = {name: str(error.get(name) or "") for name in ("type", "code", "message")}
    return ProviderError(status, **fields)


def classify_error(
    error: ProviderError, endpoint: ModelEndpoint, *, retry_after: timedelta | None = None
) -> ClassifiedError:
    """Classify an error, with advice."""
    status, quote = error.effective_status, _quote(error)
    if status in (402, 429) and error.mentions(_NO_CREDIT):
        return ClassifiedError(
            ErrorClass.PERMANENT,
            "quota",
            f"{endpoint.provider.title} reports insufficient credit: check its billing{quote}",
        )
    if status in (429, 529):
        of = ErrorClass.RATE_LIMITED if status == 429 else ErrorClass.OVERLOADED
        return ClassifiedError(of, "rate_limited", f"{_answered(status, endpoint)}{quote}", retry_after)
    if status in (408, 409) or status >= 500:
        return ClassifiedError(
            ErrorClass.UNREACHABLE, f"http_{status}", f"{_answered(status, endpoint)}{quote}"
        )
    if status < 400:
        return ClassifiedError(
            ErrorClass.TRANSIENT,
            "invalid_response",
            f"{endpoint.provider.title} ended its reply early{quote}",
        )
    return _permanent(error, endpoint, quote)


def _permanent(error: ProviderError, endpoint: ModelEndpoint, quote: str) -> ClassifiedError:
    title, variable = endpoint.provider.title, endpoint.key_variable
    match error.effective_status:
        case 401:  # this message may repeat the key
            kind, advice = (
                "authentication",
                f"the key in {variable} was refused by {title}: is it whole, and still valid?",
            )
        case 402:
            kind, advice = (
                "quota",
                f"{title} reports insufficient credit: check its billing{quote}",
            )
        case 403:
            kind, advice = (
                "permission",
                f"the key in {variable} may not use {endpoint.model!r} at {title}{quote}",
            )
        case 404 | 405 if _is_wrong_address(error, endpoint):
            kind = "wrong_base_url"
            setting = endpoint.provider.base_url_variable
            named = f"`base_url` and {setting}" if setting else "`base_url`"
            status = error.effective_status
            advice = f"{endpoint.place} answered {status}, no API of {title}: check {named}{quote}"
        case 404:
            kind = "model_not_found"
            advice = f"there is no model {endpoint.model!r} at {endpoint.place}: check its name{quote}"
        case 413:
            kind, advice = _too_long(endpoint, quote)
        case _ if error.mentions(_TOO_LONG):
            kind, advice = _too_long(endpoint, quote)
        case _ if error.mentions(_FILTERED):
            kind, advice = "content_filter", f"{title} will not answer this{quote}"
        case _ if error.mentions(_NO_CREDIT):
            kind, advice = (
                "quota",
                f"{title} reports insufficient credit: check its billing{quote}",
            )
        case other:
            kind, advice = "invalid_request", f"{_answered(other, endpoint)}: check the parameters{quote}"
    return ClassifiedError(ErrorClass.PERMANENT, kind, advice)


def _is_wrong_address(error: ProviderError, endpoint: ModelEndpoint) -> bool:
    """Whether a 404 means the address: it is not the provider's own, and the message mentions no model."""
    return endpoint.base_url != endpoint.provider.base_url and not error.mentions(
        ("model", endpoint.model.lower())
    )


def _too_long(endpoint: ModelEndpoint, quote: str) -> tuple[str, str]:
    advice = (
        f"the prompt is too long for {endpoint.model}: shorten it, or take a model with a larger context"
    )
    return "prompt_too_long", advice + quote


def _answered(status: int, endpoint: ModelEndpoint) -> str:
    return f"{endpoint.provider.title} answered {status}"


def _quote(error: ProviderError) -> str:
    message = redact_head(error.message.strip(), QUOTE)
    return f" ({message})" if message else ""
