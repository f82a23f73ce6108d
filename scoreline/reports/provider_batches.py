"""The provider batches of a batch as text and JSON: requests, state, and time of submission."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from projections.database.connection import Connection
from projections.queries.provider_batches import (
    ProviderBacklog,
    ProviderBatchStatus,
    provider_backlog,
    provider_batches_of,
)
from scoreline.formatting import counted, excerpt, printable, span, stamp

AT_WORK = frozenset({"intended", "submitted", "ended"})
SHOWN = 5
"""Provider batches that have a line of their own."""

NO_BACKLOG = ProviderBacklog()


@dataclass(frozen=True, slots=True)
class AtProviders:
    """The provider batches of a batch, and the evaluations that wait for one."""

    provider_batches: tuple[ProviderBatchStatus, ...] = ()
    backlog: ProviderBacklog = NO_BACKLOG

    @property
    def at_work(self) -> tuple[ProviderBatchStatus, ...]:
        """Provider batches whose results are not all recorded."""
        return tuple(each for each in self.provider_batches if each.state in AT_WORK)


NOTHING = AtProviders()


async def read_provider_batches(conn: Connection, batch_id: str, spec: str | None) -> AtProviders:
    """Read the provider batches of a batch; `NOTHING` where its spec uses none."""
    provider_batches = await provider_batches_of(conn, batch_id)
    if provider_batches or '"batch_api":"' in (spec or "").replace(" ", ""):
        return AtProviders(tuple(provider_batches), await provider_backlog(conn, batch_id))
    return NOTHING


def discount_line(at_providers: AtProviders) -> str | None:
    """Return the line with the number of discounted answers; None where there are none."""
    answered = sum(each.counts.succeeded for each in at_providers.provider_batches)
    return f"{counted(answered, 'answer')} by provider batches, at half the price" if answered else None


def provider_lines(at_providers: AtProviders, now: datetime) -> Iterator[str]:
    """Return a line for unsent requests and for each open provider batch."""
    if at_providers.backlog.unsent:
        yield f"{at_providers.backlog.unsent:,} wait to be sent to the provider in a batch."
    for each in at_providers.at_work[:SHOWN]:
        yield _line(each, now)
    if (more := len(at_providers.at_work) - SHOWN) > 0:
        yield f"… and {counted(more, 'more provider batch', 'more provider batches')}."


def _line(each: ProviderBatchStatus, now: datetime) -> str:
    name = printable(each.provider_id or each.id)
    note = f"; {excerpt(each.note, 200)}" if each.note else ""
    match each.state:
        case "intended":
            state = f"being submitted since {stamp(each.intended_at)}"
        case "submitted":
            polled = f", polled {span(now - each.polled_at)} ago" if each.polled_at else ""
            state = f"submitted {stamp(each.submitted_at or each.intended_at)}{polled}"
        case "ended":
            state = f"ended, {each.counts.succeeded:,} answered, results are being read"
        case other:
            state = other
    return f"Provider batch {name}: {counted(each.size, 'request')}, {state}{note}"


def provider_document(at_providers: AtProviders) -> dict[str, Any]:
    """Return provider batches as JSON."""
    return {
        "waiting": at_providers.backlog.waiting,
        "unsent": at_providers.backlog.unsent,
        "batches": [
            {
                "id": each.id,
                "provider_id": each.provider_id,
                "state": each.state,
                "requests": each.size,
                "succeeded": each.counts.succeeded,
                "errored": each.counts.errored,
                "canceled": each.counts.canceled,
                "expired": each.counts.expired,
                "submitted_at": each.submitted_at.isoformat() if each.submitted_at else None,
                "note": each.note,
            }
            for each in at_providers.provider_batches
        ],
    }
