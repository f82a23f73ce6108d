"""The table of providers: their names, the scope of their rate limits, and their prices."""

import json
import logging
import re

import pytest
from pydantic import JsonValue

from eventlog.payloads import TokenUsage
from executor.contract import ExecutionEnvironment, Metered
from executor.registry import parse_target, target_type
from executor.targets.http import HTTP
from providers import prices
from providers.endpoint import endpoint_of, find_key, scope_of
from providers.extras import install_command
from providers.prices import Price, PriceRule, cost_of, find_price, price_of, read_prices
from providers.table import PROVIDERS, LimitScope, Sdk, split_model

KEY = "sk-canary-0123456789abcdef"
CALLABLE = [name for name, row in PROVIDERS.items() if row.sdk]
NOT_YET = [name for name, row in PROVIDERS.items() if not row.sdk]


def environ(name: str) -> dict[str, str]:
    variable = PROVIDERS[name].key_variable
    return {variable: KEY} if variable else {}


def test_all_seventeen_providers_are_there():
    """Every provider of the reference has a row, under the name that users type."""
    assert set(PROVIDERS) == {
        "openai", "azure", "bedrock", "gemini", "anthropic", "xai", "groq", "deepseek", "qwen", "ollama",
        "fireworks", "mistral", "together", "lepton", "cerebras", "replicate", "baseten",
    }  # fmt: skip


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_row_has_an_address_or_an_alternative(name):
    """A provider has an SDK and an address, or a sentence that names the alternative."""
    row = PROVIDERS[name]
    assert (row.sdk and row.base_url.startswith("http")) or (row.instead and "{type:" in row.instead)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_model_is_named_by_its_provider_wherever_models_have_slashes(name):
    """`PROVIDER/MODEL` is a target of that provider, and its label is the same text."""
    spec = parse_target(f"{name}/org/model-1:free")
    assert (spec.type, spec.options, spec.label) == (
        name,
        {"model": "org/model-1:free"},
        f"{name}/org/model-1:free",
    )
    assert isinstance(target_type(name), Metered)
    assert parse_target({"type": name, "model": "m"}).label == f"{name}/m"


def test_a_text_without_a_provider_gives_none():
    """Paths and addresses are not taken for models."""
    assert [split_model(text) for text in ("openai", "openai/", "unknown/model", "/x")] == [None] * 4


@pytest.mark.parametrize("name", NOT_YET)
def test_a_provider_that_can_not_be_called_is_refused_with_an_alternative(name):
    """The error comes at submission, with a way that works."""
    with pytest.raises(ValueError, match=r"can't be called by its name.*type: (openai|http)"):
        target_type(name).check({"model": "m"})


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("openai", LimitScope.MODEL),
        ("azure", LimitScope.DEPLOYMENT),
        ("bedrock", LimitScope.REGION),
        ("gemini", LimitScope.MODEL),
        ("anthropic", LimitScope.GROUP),
        ("xai", LimitScope.MODEL),
        ("groq", LimitScope.MODEL),
        ("cerebras", LimitScope.MODEL),
    ],
)
def test_limits_that_are_not_only_by_account_are_in_the_table(name, counted):
    """The scope of a provider's limits is data."""
    assert counted in PROVIDERS[name].scope


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


def test_an_http_target_has_the_lane_of_its_host():
    """Servers outside the table are identified by host and port."""
    assert (
        HTTP.lane({"url": "https://example.org:8443/x"}, ExecutionEnvironment()) == "http:example.org:8443"
    )
    assert HTTP.tokens({}) == 0


def test_tokens_cost_the_listed_price_and_half_of_it_in_a_batch():
    """A million tokens of each at 3 and 15 dollars are 18 dollars, or 9."""
    usage = TokenUsage(1_000_000, 1_000_000)
    assert cost_of(usage, Price(3, 15)) == 18
    assert cost_of(usage, Price(3, 15), batch=True) == 9
    assert cost_of(usage, None) == 0


def test_the_first_pattern_that_matches_is_the_price():
    """Narrow patterns come before wide ones."""
    lines = (PriceRule("openai/gpt-x-mini*", 1, 2), PriceRule("openai/gpt-x*", 3, 4))
    assert find_price(lines, "openai", "gpt-x-mini-2026") == Price(1, 2)
    assert find_price(lines, "openai", "gpt-x") == Price(3, 4)
    assert find_price(lines, "openai", "other") is None


def test_the_built_in_price_list_is_dated_and_names_only_known_providers():
    """Each of its lines matches a model."""
    assert price_of("anthropic", "claude-haiku-4-5", {}) == Price(1.0, 5.0)
    assert price_of("ollama", "llama3", {}) == Price(0.0, 0.0)
    document = json.loads(prices._OURS.read_text())
    assert "Prices change" in document["about"]
    assert document["as_of"]
    assert {line["models"].partition("/")[0] for line in document["prices"]} <= set(PROVIDERS)


def test_an_unknown_model_costs_nothing_with_one_warning(caplog):
    """A missing price is no error, and is logged once."""
    with caplog.at_level(logging.WARNING, logger="providers.prices"):
        assert price_of("openai", "never-received-of", {}) is None
        assert price_of("openai", "never-received-of", {}) is None
    assert [record.getMessage() for record in caplog.records] == [
        "no price is known: calls are counted as free"
    ]


def test_configured_prices_come_first(tmp_path):
    """A file named in EVAL_PRICES overrides the list; an invalid file is refused with an error."""
    file = tmp_path / "prices.json"
    file.write_text('{"prices": [{"models": "anthropic/*", "input": 7, "output": 8}]}')
    assert price_of("anthropic", "claude-haiku-4-5", {"EVAL_PRICES": str(file)}) == Price(7, 8)
    priced = '{"prices": [{"models": "*", "input": %s, "output": 1}]}'
    wrong = ("{", "[]", '{"prices": [{"models": 1}]}', priced % "NaN", priced % -1, "[" * 50_000)
    for content in (*wrong, priced % 1 + " " * prices.MAX_FILE):
        (tmp_path / "bad.json").write_text(content)
        read_prices.cache_clear()
        with pytest.raises(ValueError, match="no list of prices"):
            price_of("openai", "m", {"EVAL_PRICES": str(tmp_path / "bad.json")})


def test_only_two_sdks_are_needed():
    """Every callable provider uses one of the official clients."""
    assert {PROVIDERS[name].sdk for name in CALLABLE} == set(Sdk)
