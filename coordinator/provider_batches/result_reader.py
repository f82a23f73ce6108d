"""Translation of a provider's results to outcomes. Pure, except that prices are read once from a file."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from coordinator.provider_batches.outcomes import Outcome, PermanentError, TransientError
from coordinator.provider_batches.provider import BatchResult, Errored, NotProcessed, Succeeded
from domain.batch_spec import TargetSpec
from eventlog import payloads as p
from eventlog.characters import without_half_characters
from eventlog.redaction import redact_head
from providers.errors import QUOTE, ProviderError
from providers.prices import Price, cost_of, price_of
from providers.requests import InvalidReply, answer_of
from providers.table import PROVIDERS

MAX_KIND = 200
"""Characters of a fault's kind."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PASSING = frozenset({408, 409, 429})
_NOT_ASKED = {
    "expired": "its provider batch expired before the request was processed",
    "canceled": "its provider batch was cancelled before the request was processed",
}


def price_in_batches(target: TargetSpec, environ: Mapping[str, str]) -> Price | None:
    """Return the price of a target's model: from its options, or from the price list."""
    if isinstance(own := target.options.get("prices"), dict):
        return Price(float(str(own["input"])), float(str(own["output"])))
    return price_of(target.type, str(target.options.get("model")), environ)


def read(result: BatchResult, target: TargetSpec, price: Price | None) -> Outcome:
    """Return the outcome of a result for its evaluation."""
    title = PROVIDERS[target.type].title
    match result.outcome:
        case Succeeded(message=message):
            return _answer(message, title, price)
        case Errored() as error:
            return _fault(error, title)
        case NotProcessed(why=why):
            return TransientError(_fault_of(why, _NOT_ASKED.get(why, why)))


def no_result(provider_id: str) -> TransientError:
    """Return the outcome of an evaluation whose provider batch ended without a result for it."""
    return TransientError(
        p.ErrorDetail(kind="no_result", message=f"{provider_id} ended without a result for it")
    )


def _answer(message: Mapping[str, Any], title: str, price: Price | None) -> Outcome:
    try:
        answer = answer_of(message)
        if answer.is_filtered:
            return PermanentError(
                _fault_of("content_filter", f"{title} stopped the answer ({answer.stop_reason})")
            )
        if len(answer.output) > p.MAX_TEXT:
            long = f"the answer has {len(answer.output):,} characters, and {p.MAX_TEXT:,} are allowed"
            return PermanentError(p.ErrorDetail(kind="too_large", message=long))
        return p.Answer(
            without_half_characters(answer.output),
            answer.usage,
            cost_of(answer.usage, price, batch=True),
        )
    except (InvalidReply, ValidationError) as error:
        why = redact_head(f"{title} sent an invalid reply: {error}", QUOTE)
        return TransientError(_fault_of("invalid_response", why))


def _fault(error: Errored, title: str) -> Outcome:
    status = ProviderError(0, type=error.type).effective_status
    kind = error.type.removesuffix("_error") or "provider"
    message = redact_head(error.message or error.type, QUOTE)
    fault = _fault_of(kind, f"{title}: {message}")
    return (
        PermanentError(fault) if 400 <= status < 500 and status not in _PASSING else TransientError(fault)
    )


def _fault_of(kind: str, message: str) -> p.ErrorDetail:
    """Create an error from a provider's text, without the characters that an event can't contain."""
    name = _CONTROL.sub(" ", without_half_characters(redact_head(kind, MAX_KIND))).strip()
    return p.ErrorDetail(kind=name or "provider", message=without_half_characters(message))
