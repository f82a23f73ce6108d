"""Errors of providers: their class, their kind and a message with the remedy."""

from dataclasses import replace
from datetime import timedelta

import pytest

from providers.endpoint import endpoint_of
from providers.errors import ErrorClass, classify_error, parse_error
from tests.redaction.trial import knowing

KEY = "sk-canary-0123456789abcdef"


ANTHROPIC_ACCESS = endpoint_of("anthropic", {"model": "claude-x"}, {"ANTHROPIC_API_KEY": KEY})


OPENAI_ACCESS = endpoint_of("openai", {"model": "gpt-x"}, {"OPENAI_API_KEY": KEY})


def anthropic_error(type_: str, message: str = "") -> dict[str, object]:
    return {"type": "error", "error": {"type": type_, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "of", "kind"),
    [
        (429, anthropic_error("rate_limit_error"), ErrorClass.RATE_LIMITED, "rate_limited"),
        (529, anthropic_error("overloaded_error"), ErrorClass.OVERLOADED, "rate_limited"),
        (200, anthropic_error("overloaded_error"), ErrorClass.OVERLOADED, "rate_limited"),
        (500, anthropic_error("api_error"), ErrorClass.UNREACHABLE, "http_500"),
        (200, anthropic_error("api_error"), ErrorClass.UNREACHABLE, "http_500"),
        (503, "<html>", ErrorClass.UNREACHABLE, "http_503"),
        (408, None, ErrorClass.UNREACHABLE, "http_408"),
        (409, None, ErrorClass.UNREACHABLE, "http_409"),
        (200, anthropic_error("strange_error"), ErrorClass.TRANSIENT, "invalid_response"),
        (
            400,
            anthropic_error("invalid_request_error", "top_k: bad"),
            ErrorClass.PERMANENT,
            "invalid_request",
        ),
        (
            400,
            anthropic_error("invalid_request_error", "prompt is too long: 9 > 8"),
            ErrorClass.PERMANENT,
            "prompt_too_long",
        ),
        (
            400,
            {"error": {"code": "context_length_exceeded", "message": "…"}},
            ErrorClass.PERMANENT,
            "prompt_too_long",
        ),
        (413, anthropic_error("request_too_large"), ErrorClass.PERMANENT, "prompt_too_long"),
        (
            400,
            {"error": {"code": "content_filter", "message": "…"}},
            ErrorClass.PERMANENT,
            "content_filter",
        ),
        (
            400,
            anthropic_error("invalid_request_error", "Your credit balance is too low"),
            ErrorClass.PERMANENT,
            "quota",
        ),
        (429, {"error": {"type": "insufficient_quota", "message": "…"}}, ErrorClass.PERMANENT, "quota"),
        (402, {"error": {"message": "Insufficient Balance"}}, ErrorClass.PERMANENT, "quota"),
        (
            401,
            anthropic_error("authentication_error", "invalid key"),
            ErrorClass.PERMANENT,
            "authentication",
        ),
        (403, anthropic_error("permission_error"), ErrorClass.PERMANENT, "permission"),
        (
            404,
            anthropic_error("not_found_error", "model: claude-x"),
            ErrorClass.PERMANENT,
            "model_not_found",
        ),
        (422, {"message": "bad"}, ErrorClass.PERMANENT, "invalid_request"),
        (418, "teapot", ErrorClass.PERMANENT, "invalid_request"),
    ],
)
def test_every_refusal_has_its_class_and_kind(status, body, of, kind):
    """One table classifies errors, the same for both SDKs and for the middle of a stream."""
    failure = classify_error(parse_error(status, body), ANTHROPIC_ACCESS)
    assert (failure.of, failure.kind) == (of, kind)


@pytest.mark.parametrize(
    ("status", "message", "help_"),
    [
        (401, f"Incorrect API key provided: {KEY}", "the key in OPENAI_API_KEY was refused by OpenAI"),
        (404, "The model does not exist", "there is no model 'gpt-x' at https://api.openai.com/v1"),
        (400, "maximum context length is 8", "too long for gpt-x: shorten it"),
        (403, "no", "the key in OPENAI_API_KEY may not use 'gpt-x'"),
        (400, f"strange {KEY}", "check the parameters"),
    ],
)
def test_a_message_has_the_remedy_and_never_the_key(status, message, help_):
    """The key is redacted even where the provider repeats it."""
    with knowing(KEY):
        failure = classify_error(parse_error(status, {"error": {"message": message}}), OPENAI_ACCESS)
    assert help_ in failure.message
    assert KEY not in failure.message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<html>Not Found</html>", "wrong_base_url"),
        ({"detail": "Not Found"}, "wrong_base_url"),
        ({"error": {"message": "The model `gpt-x` does not exist"}}, "model_not_found"),
    ],
)
def test_a_wrong_address_is_distinguished_from_a_wrong_model(body, kind):
    """A 404 from a configured address that names no model is about the address."""
    access = replace(OPENAI_ACCESS, base_url="http://127.0.0.1:9/v2")
    failure = classify_error(parse_error(404, body), access)
    assert failure.kind == kind
    assert "http://127.0.0.1:9/v2" in failure.message
    assert ("OPENAI_BASE_URL" in failure.message) == (kind == "wrong_base_url")


def test_retry_after_is_kept_and_has_no_default():
    """A provider's Retry-After is used; without one the call is retried by exponential backoff."""
    limited = classify_error(parse_error(429, None), OPENAI_ACCESS, retry_after=timedelta(seconds=9))
    assert limited.retry_after == timedelta(seconds=9)
    assert classify_error(parse_error(529, None), ANTHROPIC_ACCESS).retry_after is None
    assert classify_error(parse_error(429, None), OPENAI_ACCESS).retry_after is None
