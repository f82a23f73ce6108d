"""What a provider's results say: pure, but for prices that are read from a file once."""

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
    "expired": "its provider batch expired before it was asked",
    "canceled": "its provider batch was cancelled before it was asked",
}


def price_in_batches(target: TargetSpec, environ: Mapping[str, str]) -> Price | None:
    """Find the price of a target's model: its own, or the one in a list."""
    if isinstance(own := target.options.get("prices"), dict):
        return Price(float(str(own["input"])), float(str(own["output"])))
    return price_of(target.type, str(target.options.get("model")), environ)


def read(result: BatchResult, target: TargetSpec, price: Price | None) -> Outcome:
    """Say what a result means for its evaluation."""
    title = PROVIDERS[target.type].title
    match result.outcome:
        case Succeeded(message=message):
            return _answer(message, title, price)
        case Errored() as error:
            return _fault(error, title)
        case NotProcessed(why=why):
            return TransientError(_fault_of(why, _NOT_ASKED.get(why, why)))


def no_result(provider_id: str) -> TransientError:
    """Say that a batch came to its end without a word on an evaluation."""
    return TransientError(
        p.ErrorDetail(kind="no_result", message=f"{provider_id} ended without a result for it")
    )


def _answer(message: Mapping[str, Any], title: str, price: Price | None) -> Outcome:
    try:
        said = answer_of(message)
        if said.is_filtered:
            return PermanentError(
                _fault_of("content_filter", f"{title} stopped the answer ({said.stop_reason})")
            )
        if len(said.output) > p.MAX_TEXT:
            long = f"the answer has {len(said.output):,} characters, and {p.MAX_TEXT:,} are allowed"
            return PermanentError(p.ErrorDetail(kind="too_large", message=long))
        return p.Answer(
            without_half_characters(said.output), said.usage, cost_of(said.usage, price, batch=True)
        )
    except (InvalidReply, ValidationError) as error:
        why = redact_head(f"{title} sent a reply that is none: {error}", QUOTE)
        return TransientError(_fault_of("invalid_response", why))


def _fault(error: Errored, title: str) -> Outcome:
    status = ProviderError(0, type=error.type).effective_status
    kind = error.type.removesuffix("_error") or "provider"
    told = redact_head(error.message or error.type, QUOTE)
    fault = _fault_of(kind, f"{title}: {told}")
    return (
        PermanentError(fault) if 400 <= status < 500 and status not in _PASSING else TransientError(fault)
    )


def _fault_of(kind: str, message: str) -> p.ErrorDetail:
    """Make a fault of what a provider sent: any text, of which an event takes only some."""
    name = _CONTROL.sub(" ", without_half_characters(redact_head(kind, MAX_KIND))).strip()
    return p.ErrorDetail(kind=name or "provider", message=without_half_characters(message))
