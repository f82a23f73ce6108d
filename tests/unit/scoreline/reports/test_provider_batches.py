"""Provider batches of a batch as text and JSON."""

from datetime import timedelta
from typing import Any

import pytest

from projections.ledger.provider_batches import RequestCounts
from projections.queries.provider_batches import ProviderBacklog, ProviderBatchStatus
from scoreline.reports.provider_batches import (
    SHOWN,
    AtProviders,
    discount_line,
    provider_document,
    provider_lines,
)
from tests.builders import START

NOW = START + timedelta(minutes=10)
SUBMITTED = ProviderBatchStatus(
    "pb-1", "msgbatch_1", "submitted", 1_000, RequestCounts(), START, START, None, None, ""
)


def at_providers(*changes: dict[str, Any], unsent: int = 0) -> AtProviders:
    batches = tuple(SUBMITTED._replace(**change) for change in changes)
    return AtProviders(batches, ProviderBacklog(waiting=unsent, unsent=unsent))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"state": "intended", "provider_id": None},
            "pb-1: 1,000 requests, being submitted since 2026-01-01 00:00:00.000 UTC",
        ),
        ({}, "msgbatch_1: 1,000 requests, submitted 2026-01-01 00:00:00.000 UTC"),
        (
            {"size": 1, "polled_at": NOW - timedelta(seconds=3), "note": "slow\nqueue"},
            "msgbatch_1: 1 request, submitted 2026-01-01 00:00:00.000 UTC, polled 3.0 s ago; slow queue",
        ),
        (
            {"state": "ended", "counts": RequestCounts(succeeded=998)},
            "msgbatch_1: 1,000 requests, ended, 998 answered, results are being read",
        ),
    ],
)
def test_an_open_provider_batch_has_a_line_with_its_state(change: dict[str, Any], text: str) -> None:
    """A batch that the provider has not named yet has our id."""
    assert list(provider_lines(at_providers(change), NOW)) == [f"Provider batch {text}"]


def test_only_open_provider_batches_have_lines_and_only_the_first_of_them() -> None:
    """Unsent requests come first, the number of further batches last."""
    many = at_providers({"state": "collected"}, *[{}] * (SHOWN + 2), unsent=1_500)
    first, *lines, last = provider_lines(many, NOW)
    assert first == "1,500 wait to be sent to the provider in a batch."
    assert len(lines) == SHOWN
    assert last == "… and 2 more provider batches."
    *_, last = provider_lines(at_providers(*[{}] * (SHOWN + 1)), NOW)
    assert last == "… and 1 more provider batch."


def test_answers_of_all_provider_batches_are_discounted() -> None:
    """Without an answer there is no line."""
    answered = {"state": "collected", "counts": RequestCounts(succeeded=2)}
    assert discount_line(at_providers(answered, answered)) == (
        "4 answers by provider batches, at half the price"
    )
    assert discount_line(at_providers({})) is None


def test_the_document_lists_every_provider_batch() -> None:
    """A batch that was not submitted has no time of submission."""
    document = provider_document(at_providers({"state": "collected"}, {"submitted_at": None}, unsent=3))
    assert (document["waiting"], document["unsent"]) == (3, 3)
    assert [(each["state"], each["submitted_at"]) for each in document["batches"]] == [
        ("collected", "2026-01-01T00:00:00+00:00"),
        ("submitted", None),
    ]
