"""The table of providers: their names, addresses and alternatives."""

import pytest

from executor.contract import Metered
from executor.registry import parse_target, target_type
from providers.table import PROVIDERS, LimitScope, Sdk, split_model
from tests.unit.providers.sample_replies import CALLABLE

NOT_YET = [name for name, row in PROVIDERS.items() if not row.sdk]


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


def test_only_two_sdks_are_needed():
    """Every callable provider uses one of the official clients."""
    assert {PROVIDERS[name].sdk for name in CALLABLE} == set(Sdk)
