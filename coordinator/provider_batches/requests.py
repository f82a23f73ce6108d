"""The evaluations that go through provider batches, and their requests. Pure.

The id of a request contains the provider batch and the evaluation. So every result can be attributed, and
a batch at the provider whose submission was never confirmed can be attributed by its first result.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic_core import to_json

from domain.batch_spec import BatchSpec, TargetSpec
from domain.ids import evaluation_id
from domain.template import UnknownField, case_fields, render
from eventlog import payloads as p
from projections.ledger.provider_batches import PendingRequest, ProviderBatch
from providers.requests import request_of
from providers.table import PROVIDERS, Sdk

NEEDS_NO_CALL = "recorded"
"""The type of targets with recorded answers: they need no provider."""
_CUSTOM_ID = re.compile(r"([0-9a-f]{16})-(\d{8,})")


class UnsupportedRequest(Exception):  # noqa: N818 - a property of the evaluation
    """An evaluation for which no request can be made."""

    def __init__(self, fault: p.ErrorDetail) -> None:
        super().__init__(fault.message)
        self.fault = fault


def has_batches(target: TargetSpec) -> bool:
    """Return whether a target's provider has a batch API."""
    provider = PROVIDERS.get(target.type)
    return provider is not None and provider.sdk is Sdk.ANTHROPIC


def unfit(spec: BatchSpec) -> str | None:
    """Return why a batch can't use provider batches; None if it can."""
    for target in spec.targets:
        if not has_batches(target) and target.type != NEEDS_NO_CALL:
            return (
                f"the provider of {target.label} takes no batches of requests: "
                "--batch-api is for anthropic/MODEL, and for recorded answers beside it"
            )
    return None


def uses_provider_batch_in(spec: BatchSpec) -> Callable[[p.AnyPayload], bool]:
    """Return a predicate of openings: whether a provider batch is to answer them."""
    if spec.batch_api is None:
        return lambda _opening: False
    variants = {variant.number for variant in spec.variants if has_batches(variant.target)}
    return lambda opening: (
        isinstance(opening, p.Queued)
        and opening.answer is None
        and opening.variant in variants
        and not opening.in_group
    )


def custom_id(provider_batch_id: str, number: int) -> str:
    """Return the id of a request."""
    return f"{provider_batch_id}-{number:08}"


def number_in(provider_batch: ProviderBatch, name: str) -> int | None:
    """Return the evaluation number of a request; None if it belongs to another provider batch."""
    match = _CUSTOM_ID.fullmatch(name)
    return int(match[2]) if match and match[1] == provider_batch.id else None


def number_of(key: str) -> int:
    """Return the number in an evaluation id."""
    return int(key.rpartition(".")[2])


def members_of(provider_batch: ProviderBatch) -> Iterator[tuple[str, int]]:
    """Yield the evaluations of a provider batch, and the requested attempt of each."""
    for number, attempt in zip(provider_batch.members, provider_batch.attempts, strict=True):
        yield evaluation_id(provider_batch.batch_id, number), attempt


def request(provider_batch_id: str, pending: PendingRequest, spec: BatchSpec) -> bytes:
    """Encode one request as JSON; raises `UnsupportedRequest`."""
    params = params_of(pending, spec)
    return to_json(
        {"custom_id": custom_id(provider_batch_id, number_of(pending.evaluation_id)), "params": params}
    )


def params_of(pending: PendingRequest, spec: BatchSpec) -> dict[str, Any]:
    """Return the parameters of one request; raises `UnsupportedRequest`."""
    opening = pending.opening.data
    if not isinstance(opening, p.Queued) or opening.variant >= len(spec.variants):
        raise UnsupportedRequest(p.ErrorDetail(kind="invalid", message="its opening can't be read"))
    variant = spec.variants[opening.variant]
    try:
        prompt = render(variant.prompt, case_fields(opening.case))
        return request_of(variant.target.type, variant.target.options, prompt)
    except (UnknownField, ValueError, KeyError) as error:
        fault = p.ErrorDetail(kind="invalid", message=f"the request can't be made: {error}")
        raise UnsupportedRequest(fault) from None
