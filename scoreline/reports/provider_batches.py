"""What a batch has at providers, in words: how many wait, since when, and what keeps them."""

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
"""Provider batches that are told of one by one."""


NOBODY = ProviderBacklog()


@dataclass(frozen=True, slots=True)
class AtProviders:
    """All that a batch has at providers, or means to send there."""

    provider_batches: tuple[ProviderBatchStatus, ...] = ()
    backlog: ProviderBacklog = NOBODY

    @property
    def at_work(self) -> tuple[ProviderBatchStatus, ...]:
        """Those that are not done with."""
        return tuple(each for each in self.provider_batches if each.state in AT_WORK)


NOTHING = AtProviders()


async def look_at_providers(conn: Connection, batch_id: str, spec: str | None) -> AtProviders:
    """Look; of a batch that never asked a provider for batches, at nothing."""
    provider_batches = await provider_batches_of(conn, batch_id)
    if provider_batches or '"batch_api":"' in (spec or "").replace(" ", ""):
        return AtProviders(tuple(provider_batches), await provider_backlog(conn, batch_id))
    return NOTHING


def discount_line(look: AtProviders) -> str | None:
    """Describe how much was had cheaper; nothing where nothing was."""
    answered = sum(each.counts.succeeded for each in look.provider_batches)
    return f"{counted(answered, 'answer')} by provider batches, at half the price" if answered else None


def provider_lines(look: AtProviders, now: datetime) -> Iterator[str]:
    """Describe what provider batches are doing; nothing where there are none."""
    if look.backlog.unsent:
        yield f"{look.backlog.unsent:,} wait to be sent to the provider in a batch."
    for each in look.at_work[:SHOWN]:
        yield _line(each, now)
    if (more := len(look.at_work) - SHOWN) > 0:
        yield f"… and {more:,} more provider batches."


def _line(each: ProviderBatchStatus, now: datetime) -> str:
    name = printable(each.provider_id or each.id)
    note = f"; {excerpt(each.note, 200)}" if each.note else ""
    match each.state:
        case "intended":
            what = f"being submitted since {stamp(each.intended_at)}"
        case "submitted":
            polled = f", looked at {span(now - each.polled_at)} ago" if each.polled_at else ""
            what = f"submitted {stamp(each.submitted_at or each.intended_at)}{polled}"
        case "ended":
            what = f"ended, {each.counts.succeeded:,} answered, results are being read"
        case other:
            what = other
    return f"Provider batch {name}: {each.size:,} requests, {what}{note}"


def provider_document(look: AtProviders) -> dict[str, Any]:
    """Write it for machines."""
    return {
        "waiting": look.backlog.waiting,
        "unsent": look.backlog.unsent,
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
            for each in look.provider_batches
        ],
    }
