"""Counts of the calls that a simulator received."""

from scoreline.provider_sim import stats
from scoreline.provider_sim.stats import CallStats


def test_calls_are_counted_by_endpoint_and_status():
    """Without a status all calls of the endpoint count; a status is a number or the name of a fault."""
    counts = CallStats()
    counts.calls.update({("/a", "200"): 2, ("/a", "reset_before"): 1, ("/b", "200"): 4})
    assert (counts.of("/a"), counts.of("/a", 200), counts.of("/a", "reset_before")) == (3, 2, 1)
    assert counts.listed()["calls"] == {"/a": {"200": 2, "reset_before": 1}, "/b": {"200": 4}}


def test_repeated_answers_are_counted_apart_from_first_ones():
    """A client that repeats an answered request pays twice; the count shows it."""
    counts = CallStats()
    for digest in (1, 2, 1, 1):
        counts.answer(digest, 10, 5)
    counts.created_batch([1, 2])
    counts.created_batch([2])
    listed = counts.listed()
    assert (listed["answered_again"], listed["input_tokens"], listed["output_tokens"]) == (2, 40, 20)
    assert (listed["batch_requests"], listed["batch_requests_again"]) == (3, 1)


def test_the_maximum_in_flight_stays_after_calls_end():
    """A reset keeps the calls in flight, and the maximum begins with them."""
    counts = CallStats()
    for _ in range(3):
        counts.began()
    counts.ended()
    counts.ended()
    assert (counts.in_flight, counts.max_in_flight) == (1, 3)
    counts.forget()
    assert (counts.in_flight, counts.max_in_flight) == (1, 1)


def test_the_number_of_remembered_requests_is_bounded(monkeypatch):
    """Beyond the limit the counts of requests begin anew."""
    monkeypatch.setattr(stats, "_MOST_REQUESTS", 2)
    counts = CallStats()
    assert [counts.visited(digest) for digest in (1, 1, 2, 3)] == [1, 2, 1, 1]
    assert counts.visited(1) == 1
