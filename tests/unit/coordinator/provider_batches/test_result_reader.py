"""Results of a provider as outcomes of evaluations."""

import pytest

from coordinator.provider_batches.outcomes import Outcome, PermanentError, TransientError
from coordinator.provider_batches.provider import BatchResult, Errored, NotProcessed, Succeeded
from coordinator.provider_batches.result_reader import MAX_KIND, no_result, price_in_batches, read
from domain.batch_spec import TargetSpec
from eventlog import payloads as p
from providers.prices import Price
from tests.unit.coordinator.provider_batches.harness import CLAUDE, COST

PRICE = Price(10.0, 100.0)


def outcome_of(outcome: Succeeded | Errored | NotProcessed) -> Outcome:
    """Read one result."""
    return read(BatchResult("e-1", outcome), CLAUDE, PRICE)


def message(text: str = "4", **fields: str) -> Succeeded:
    """Make a message of the provider."""
    usage = {"input_tokens": 10, "output_tokens": 2}
    content = [{"type": "text", "text": text}]
    return Succeeded({"content": content, "usage": usage, "stop_reason": "end_turn", **fields})


def test_an_answer_has_its_tokens_and_half_the_price():
    """Half a character, which an event can't hold, is replaced."""
    answer = outcome_of(message("4\ud83d"))
    assert isinstance(answer, p.Answer)
    assert (answer.output, answer.usage) == ("4?", p.TokenUsage(10, 2))
    assert answer.cost_usd == pytest.approx(COST)


def test_a_filtered_answer_fails_for_good():
    """A retry would be filtered again."""
    outcome = outcome_of(message(stop_reason="refusal"))
    assert isinstance(outcome, PermanentError)
    assert outcome.fault.kind == "content_filter"
    assert "(refusal)" in outcome.fault.message


def test_an_answer_beyond_the_limit_fails_for_good():
    """One character less is an answer."""
    assert isinstance(outcome_of(message("x" * p.MAX_TEXT)), p.Answer)
    outcome = outcome_of(message("x" * (p.MAX_TEXT + 1)))
    assert isinstance(outcome, PermanentError)
    assert outcome.fault.kind == "too_large"
    assert f"{p.MAX_TEXT + 1:,} characters" in outcome.fault.message


def test_an_invalid_message_is_retried():
    """The fault quotes what is wrong with it."""
    outcome = outcome_of(Succeeded({"content": 7}))
    assert isinstance(outcome, TransientError)
    assert outcome.fault.kind == "invalid_response"
    assert "sent an invalid reply" in outcome.fault.message


@pytest.mark.parametrize(
    ("kind", "of", "named"),
    [
        ("invalid_request_error", PermanentError, "invalid_request"),
        ("rate_limit_error", TransientError, "rate_limit"),
        ("overloaded_error", TransientError, "overloaded"),
        ("of_another_release", TransientError, "of_another_release"),
        ("", TransientError, "provider"),
        ("\x00\n", TransientError, "provider"),
        ("x" * 500, TransientError, None),
    ],
)
def test_only_an_error_of_the_request_is_permanent(kind, of, named):
    """A limit, an overload and an unknown type pass; the kind is short and has no control characters."""
    outcome = outcome_of(Errored(kind, "because"))
    assert isinstance(outcome, of)
    assert "because" in outcome.fault.message
    assert len(outcome.fault.kind) <= MAX_KIND
    if named:
        assert outcome.fault.kind == named


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("expired", "its provider batch expired before the request was processed"),
        ("canceled", "its provider batch was cancelled before the request was processed"),
        ("paused", "paused"),
    ],
)
def test_an_unprocessed_request_is_retried_with_its_reason(why, message):
    """A reason that this release does not know is quoted."""
    assert outcome_of(NotProcessed(why)) == TransientError(p.ErrorDetail(kind=why, message=message))


def test_a_missing_result_names_the_provider_batch():
    """The id leads to the batch in the provider's console."""
    assert no_result("msgbatch_7").fault.message == "msgbatch_7 ended without a result for it"


def test_prices_of_the_target_win_over_the_price_list():
    """A model that neither knows has no price."""
    assert price_in_batches(CLAUDE, {}) == PRICE
    assert price_in_batches(TargetSpec("anthropic", "anthropic/x", {"model": "no-such-model"}), {}) is None
