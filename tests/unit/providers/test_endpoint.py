"""The table of providers: their names, the scope of their rate limits, and their prices."""

import re

import pytest
from pydantic import JsonValue

from executor.contract import ExecutionEnvironment, Metered
from executor.registry import target_type
from providers.endpoint import endpoint_of, find_key, scope_of
from providers.extras import install_command
from providers.table import PROVIDERS, LimitScope
from tests.unit.providers.sample_replies import CALLABLE

KEY = "sk-canary-0123456789abcdef"


def environ(name: str) -> dict[str, str]:
    variable = PROVIDERS[name].key_variable
    return {variable: KEY} if variable else {}


@pytest.mark.parametrize(
    ("name", "model", "scope"),
    [
        ("anthropic", "claude-opus-4-8", "claude-opus-4*"),
        ("anthropic", "claude-opus-4-5-20251101", "claude-opus-4*"),
        ("anthropic", "claude-sonnet-4-6", "claude-sonnet-4*"),
        ("anthropic", "claude-haiku-4-5", "claude-haiku-4*"),
        ("anthropic", "claude-next", "claude-next"),
        ("openai", "gpt-5", "gpt-5"),
        ("mistral", "mistral-large-latest", "all"),
        ("together", "meta/llama", "all"),
    ],
)
def test_models_that_share_a_limit_have_one_scope(name, model, scope):
    """Anthropic limits groups of models, OpenAI each model, others the account alone."""
    assert scope_of(PROVIDERS[name], model) == scope


@pytest.mark.parametrize("name", CALLABLE)
def test_a_lane_names_provider_account_and_scope_and_no_key(name):
    """Two keys have two lanes, a named account has one, and neither lane name reveals a key."""
    type_ = target_type(name)
    assert isinstance(type_, Metered)
    lane = type_.lane({"model": "m"}, ExecutionEnvironment(environ=environ(name)))
    assert lane is not None
    provider, account, scope = lane.split(":")
    assert (provider, scope) == (name, "m" if PROVIDERS[name].scope - {LimitScope.ACCOUNT} else "all")
    assert KEY[:8] not in lane
    assert len(account) == 8 or account == "local"
    named = type_.lane({"model": "m", "account": "team"}, ExecutionEnvironment(environ=environ(name)))
    assert named == f"{name}:team:{scope}"
    assert type_.tokens({"model": "m"}) > 0


def test_another_host_is_another_lane():
    """A self-hosted server under a provider's name shares no limit with the provider."""
    options = {"model": "m", "base_url": "http://127.0.0.1:8080/v1", "account": "a"}
    assert endpoint_of("openai", options, {"OPENAI_API_KEY": KEY}).lane == "openai:a:m@127.0.0.1:8080"
    by_variable = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://h:1"}
    access = endpoint_of("anthropic", {"model": "claude-opus-4-8", "account": "a"}, by_variable)
    assert (access.base_url, access.lane) == ("http://h:1", "anthropic:a:claude-opus-4*@h:1")


@pytest.mark.parametrize("name", [name for name in CALLABLE if PROVIDERS[name].key_variable])
def test_a_missing_key_is_named_by_its_variable(name):
    """The error names the variable to set."""
    with pytest.raises(ValueError, match=PROVIDERS[name].key_variable):
        endpoint_of(name, {"model": "m"}, {"OTHER_KEY": KEY})


def test_a_key_may_have_a_variable_of_its_own_but_none_of_scoreline():
    """Several accounts of one provider have a variable each; Scoreline's own variables are refused."""
    options = {"model": "m", "key_variable": "TEAM_API_KEY"}
    assert endpoint_of("openai", options, {"TEAM_API_KEY": KEY}).key == KEY
    for variable in ("EVAL_REDIS_KEY", "HOME", "lower_key"):
        with pytest.raises(ValueError, match="key_variable"):
            target_type("openai").check({"model": "m", "key_variable": variable})


def test_a_key_is_in_no_representation():
    """The representation of an endpoint, which may be logged, does not hold it."""
    access = endpoint_of("openai", {"model": "m"}, {"OPENAI_API_KEY": KEY})
    assert KEY not in repr(access) + str(access)


def test_a_key_that_can_not_be_sent_is_named_by_its_variable_and_not_shown():
    """A key with a line break is refused, because HTTP libraries quote an invalid header in their error."""
    for bad in (f"{KEY}\n{KEY}", f"{KEY}é"):
        with pytest.raises(ValueError, match="the key in OPENAI_API_KEY has a character") as caught:
            endpoint_of("openai", {"model": "m"}, {"OPENAI_API_KEY": bad})
        assert KEY not in str(caught.value)


def test_a_password_in_an_address_is_shown_nowhere():
    """Addresses from the environment may hold one; lanes and messages have the host alone."""
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://me:hunter2@proxy.test/v1?key=hunter2"}
    access = endpoint_of("openai", {"model": "m", "account": "a"}, environ)
    assert access.place == "https://proxy.test/v1"
    assert access.lane == "openai:a:m@proxy.test"
    assert "hunter2" not in repr(access)


def test_words_that_begin_like_keys_are_allowed():
    """A prompt may mention libraries and constraints."""
    options: JsonValue = {
        "system": "Use sk-learn-based-classification and pk_constraint_violation_handling.",
        "max_tokens": 1,
    }
    assert find_key(options) is None


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"model": "m", "api_key": "x"}, "api_key"),
        ({"model": "m", "parameters": {"token": "x"}}, "parameters.token"),
        ({"model": "m", "system": f"use {KEY}"}, "system"),
        ({"model": "m", "messages": [{"role": "user", "content": KEY}]}, "messages.0.content"),
    ],
)
def test_a_key_among_the_options_is_refused_and_not_repeated(options, where):
    """Specs are stored: the error names the option and the variable, not the key."""
    assert find_key(options) == where
    with pytest.raises(ValueError, match=r"environment, as OPENAI_API_KEY") as caught:
        target_type("openai").check(options)
    assert where in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "match"),
    [
        ("temperature", 0, "no option 'temperature'"),
        ("parameters", {"stream": True}, "stream is not for the parameters"),
        ("parameters", {"n": 2}, "an answer is one text"),
        ("messages", [{"role": "system", "content": "x"}], "role: user"),
        ("messages", [{"role": "user"}], "role: user"),
        ("base_url", "ftp://x", "http://"),
        ("base_url", "https://me:you@x", "password"),
        ("headers", {"X-Api-Key": "abc"}, r"write \$NAME"),
        ("prices", {"input": -1, "output": 0}, "prices.input"),
        ("account", "a b", "account"),
        ("model", "a model}", "model"),
    ],
)
def test_options_that_make_no_sense_are_refused(option, value, match):
    """The error names the option."""
    with pytest.raises(ValueError, match=match):
        target_type("openai").check({"model": "m", option: value})


def test_a_missing_sdk_is_an_error_with_the_install_command(monkeypatch):
    """The same error comes at submission and from executors."""
    monkeypatch.setattr("providers.clients.find_spec", lambda name: None)
    here = ExecutionEnvironment(environ={"ANTHROPIC_API_KEY": KEY})
    for ask in (lambda: target_type("anthropic").check({"model": "m"}),
                lambda: target_type("anthropic").make({"model": "m"}, here)):  # fmt: skip
        with pytest.raises(ValueError, match=re.escape(install_command("providers"))):
            ask()
