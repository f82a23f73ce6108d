"""Prices of models: the listed, the configured and the unknown ones."""

import json
import logging

import pytest

from eventlog.payloads import TokenUsage
from providers import prices
from providers.prices import Price, PriceRule, cost_of, find_price, price_of, read_prices
from providers.table import PROVIDERS


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
