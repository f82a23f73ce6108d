"""Patterns: searched within a time limit, and refused where they are invalid."""

import asyncio
import threading
import time

import pytest

from executor.contract import Permanent
from executor.registry import evaluator_type
from tests.unit.executor.evaluators.scored import judge


@pytest.mark.parametrize("options", [{"extract": "("}, {"expected_extract": "*"}])
def test_an_invalid_pattern_is_refused_at_submission(options):
    """A typo in a pattern is reported when the batch is submitted."""
    with pytest.raises(ValueError, match="is not a regular expression"):
        evaluator_type("exact").check(options)


async def test_an_expected_value_that_is_no_pattern_is_a_fault():
    """Patterns that come with the cases are read with the case."""
    with pytest.raises(Permanent, match="is not a regular expression"):
        await judge("regex", "x", "(")


async def test_a_catastrophic_pattern_is_ended():
    """A pattern that would take for ever takes a moment, and is a fault that names it."""
    started = time.monotonic()
    with pytest.raises(Permanent, match=r"'\(a\+\)\+\$' takes too long"):
        await judge("regex", "a" * 60 + "b", pattern=r"(a+)+$")
    assert time.monotonic() - started < 5  # it would be centuries


async def test_a_catastrophic_pattern_on_a_long_text_does_not_stop_the_loop(monkeypatch):
    """Where the matcher can't be interrupted in time, it runs in a process that is killed."""
    monkeypatch.setattr("executor.evaluators.extract.TIMEOUT", 0.3)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with pytest.raises(Permanent, match="takes too long"):
        await judge("exact", " " * 400_000, "x", extract=r"\s*x")
    ticking.cancel()
    assert ticks > 3


async def test_a_long_text_is_searched_like_a_short_one():
    """The other process finds what this one would have found, flags and all."""
    text = "A: 1\n" + "é\n" * 30_000 + "A: 2\nend"
    assert (await judge("exact", text, "2", extract=r"^A: (.+)$")).passed
    assert (await judge("regex", text, pattern="^END$", ignore_case=True)).passed
    assert not (await judge("regex", text, pattern="^END$")).passed


def test_off_the_main_thread_patterns_are_limited_too():
    """No timer can reach another thread: the search moves to a process of its own."""
    outcome = []

    def run() -> None:
        outcome.append(asyncio.run(judge("exact", "A: 1", "1", extract="A: (.+)")))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert outcome[0].passed
