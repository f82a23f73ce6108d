"""What counts as bought again: only what was on record when the next attempt was claimed."""

import pytest

from tests.chaos.fleet_checker import Seen, bought_again


def life(*events: tuple[int, str, int], cached: bool = False) -> list[Seen]:
    """Attempts, types and arrivals, written short; `cached` is true of the last."""
    seen = [Seen(attempt, kind, f"{at}-0", cached=False, reason="") for attempt, kind, at in events]
    return [*seen[:-1], seen[-1]._replace(cached=cached)]


@pytest.mark.parametrize("kind", ["responded", "scored"])
def test_what_was_on_record_at_the_claim_may_not_be_bought_again(kind: str) -> None:
    """An answer, or a paid score, that was there before the next claim is named."""
    seen = life((1, "provisioning", 1), (1, kind, 5), (2, "provisioning", 6), (2, kind, 9))
    assert bought_again("e", seen) == [f"e: attempt 2 bought what attempt 1 had {kind}"]


def test_what_came_after_the_claim_could_not_be_known() -> None:
    """A late answer of an executor presumed dead is no fault of the one that called meanwhile."""
    seen = life((1, "provisioning", 1), (1, "responded", 7), (2, "provisioning", 6), (2, "responded", 9))
    assert bought_again("e", seen) == []


def test_an_answer_from_the_record_is_not_bought() -> None:
    """An executor that repeats what is on record pays nothing."""
    events = ((1, "provisioning", 1), (1, "responded", 5), (2, "provisioning", 6), (2, "responded", 9))
    assert bought_again("e", life(*events, cached=True)) == []


def test_entries_of_one_millisecond_are_distinguished() -> None:
    """Arrivals are compared as Redis counts them, not as text."""
    claim = Seen(2, "provisioning", "5-10", cached=False, reason="")
    answers = [Seen(n, "responded", at, cached=False, reason="") for n, at in ((1, "5-9"), (2, "6-0"))]
    assert len(bought_again("e", [*answers, claim])) == 1
