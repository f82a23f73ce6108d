"""Evaluators that compare: exact, contains, regex and numeric."""

import asyncio
import threading
import time

import pytest

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators.numeric import number_in
from executor.registry import evaluator_type


async def judge(kind: str, output: str, expected=None, **options) -> p.Score:
    evaluator = evaluator_type(kind).make("e", options, ExecutionEnvironment())
    case = p.Case(id="c", expected=expected)
    try:
        return await evaluator.score(ScoringRequest(case, output, {}))
    finally:
        await evaluator.aclose()


@pytest.mark.parametrize(
    ("kind", "output", "expected", "options", "passed"),
    [
        ("exact", " yes\n", "yes", {}, True),
        ("exact", " yes", "yes", {"strip": False}, False),
        ("exact", "YES", "yes", {}, False),
        ("exact", "YES", "yes", {"ignore_case": True}, True),
        ("exact", '{"a":1}', {"a": 1}, {}, True),
        ("exact", "A: 1\nA: 2", "2", {"extract": r"^A: (.+)$"}, True),
        ("exact", "ab", "abab", {"extract": "ab", "expected_extract": "ab"}, True),
        ("contains", "the answer is 42.", "42", {}, True),
        ("contains", "the answer is 42.", "43", {}, False),
        ("contains", "red and blue", ["red", "blue"], {}, True),
        ("contains", "red and blue", None, {"value": ["red", "green"]}, False),
        ("contains", "red and blue", None, {"value": ["red", "green"], "match": "any"}, True),
        ("contains", "red", None, {"value": ["green"], "match": "any"}, False),
        ("contains", "RED", None, {"value": "red", "ignore_case": True}, True),
        ("regex", "id: 17", None, {"pattern": r"^id: \d+$"}, True),
        ("regex", "id: x", None, {"pattern": r"^id: \d+$"}, False),
        ("regex", "ID: 17", None, {"pattern": r"^id: \d+$", "ignore_case": True}, True),
        ("regex", "abc", "a.c", {}, True),
        ("numeric", "$1,234.50", 1234.5, {}, True),
        ("numeric", "1234.5.", "1,234.50", {}, True),
        ("numeric", "50 %", "50", {}, True),
        ("numeric", "-3", "3", {}, False),
        ("numeric", "3.1", "3", {"tolerance": 0.2}, True),
        ("numeric", "3.3", "3", {"tolerance": 0.2}, False),
        ("numeric", "101", "100", {"relative_tolerance": 0.01}, True),
        ("numeric", "102", "100", {"relative_tolerance": 0.01}, False),
        ("numeric", "9007199254740993", "9007199254740992", {}, False),
        ("numeric", "about 5", "5", {}, False),
        ("numeric", "3/4", "0.75", {}, False),
    ],
)
async def test_a_comparison(kind, output, expected, options, passed):
    """Each option of each evaluator makes the difference that it should."""
    score = await judge(kind, output, expected, **options)
    assert (score.passed, score.score) == (passed, float(passed))
    assert bool(score.reason) is not passed


async def test_an_output_without_the_pattern_is_a_failed_score_with_a_reason():
    """The reason quotes the pattern and the output."""
    score = await judge("exact", "no idea", "1", extract=r"A: (.+)$")
    assert (score.passed, score.score) == (False, 0.0)
    assert score.reason == r"'A: (.+)$' does not match the output: 'no idea'"


async def test_a_reason_quotes_no_more_than_a_line():
    """However long the output, the reason stays short."""
    assert len((await judge("exact", "x" * 100_000, "y")).reason) < 300


@pytest.mark.parametrize("kind", ["exact", "contains", "regex", "numeric"])
async def test_a_case_without_an_expected_value_is_a_fault_not_a_score(kind):
    """Without a value to compare with, the evaluator cannot score the answer."""
    with pytest.raises(Permanent, match="has no expected value"):
        await judge(kind, "1")


@pytest.mark.parametrize("kind", ["exact", "contains", "regex", "numeric"])
async def test_an_expected_value_without_the_pattern_is_a_fault_not_a_score(kind):
    """A mistake in the spec or the dataset does not count as a wrong answer."""
    with pytest.raises(Permanent, match="does not match the expected value: 'one'") as caught:
        await judge(kind, "no idea", "one", extract=r"A: (.+)$", expected_extract=r"#### (.+)$")
    assert caught.value.kind == "bad_expected"


async def test_an_expected_value_that_is_no_number_is_a_fault_not_a_score():
    """No answer could match it."""
    with pytest.raises(Permanent, match="the expected value is not a number: 'one'") as caught:
        await judge("numeric", "1", "one")
    assert caught.value.kind == "bad_expected"


def test_an_evaluator_declares_that_it_needs_an_expected_value():
    """A case that its evaluator could not score is refused at submission."""
    assert evaluator_type("exact").needs_expected
    assert evaluator_type("numeric").needs_expected
    for kind, option in (("contains", "value"), ("regex", "pattern")):
        assert not evaluator_type(kind).needs_expected
        assert evaluator_type(kind).placeholders({}) == {"expected"}
        assert evaluator_type(kind).placeholders({option: "x"}) == frozenset()


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


@pytest.mark.parametrize(
    "text", ["", ".", "-", "$", "%", ",", "e5", "1e99999", "--1", "- -1", "nan", "inf", "9" * 500]
)
def test_a_text_that_is_no_number_gives_none(text):
    """Signs without digits, words, and texts too long for a number."""
    assert number_in(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("-$5", "-5"), ("$-5", "-5"), ("\u22125", "-5"), (".5", "0.5"), ("1e3", "1000"), ("€ 7", "7")],
)
def test_numbers_are_read_as_people_write_them(text, value):
    """A sign before or behind the currency, a minus as typesetters have it."""
    assert number_in(text) == pytest.approx(number_in(value))
