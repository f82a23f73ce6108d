"""Options of model calls: no key, and no address that holds one, is stored with a batch."""

import pytest
from pydantic import TypeAdapter

from executor.options import OptionModel, read_options
from executor.targets.model_options import BaseUrl, KeyVariable, Parameters, check_callable, refuse_keys
from providers.table import PROVIDERS


class SomeOptions(OptionModel):
    """One option of each validated kind."""

    base_url: BaseUrl = "http://h.test"
    key_variable: KeyVariable = "A_KEY"
    parameters: Parameters | None = None


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("key_variable", "sk-abcdef123456", "must be the name of a variable with KEY or TOKEN"),
        ("key_variable", "HOME", "must be the name of a variable with KEY or TOKEN"),
        ("key_variable", "EVAL_API_KEY", "EVAL_ names are Scoreline's own"),
        ("base_url", "h.test/v1", "must start with http:// or https:// and name a host"),
        ("base_url", "https:///v1", "must start with http:// or https:// and name a host"),
        ("base_url", "https://me:pw@h.test/v1", "would be stored with its password"),
        ("base_url", "https://h.test/?api_key=abcdef123456", "the parameter api_key would be stored"),
        ("parameters", {"stream": True}, "stream"),
    ],
)
def test_an_option_that_is_invalid_or_holds_a_secret_is_refused(option, value, error):
    """The message names the option and the remedy."""
    with pytest.raises(ValueError, match=f"the target: {option}: .*{error}"):
        read_options(SomeOptions, {option: value}, of="the target")


@pytest.mark.parametrize("name", ["MY_API_KEY", "TOKEN", "KEY2"])
def test_a_variable_of_a_key_is_accepted(name):
    """By its name alone; it need not be set where the batch is submitted."""
    assert TypeAdapter(KeyVariable).validate_python(name) == name


def test_a_provider_without_a_client_is_refused_with_an_alternative():
    """The error names what to use instead."""
    azure = PROVIDERS["azure"]
    with pytest.raises(ValueError, match="Azure OpenAI can't be called by its name") as refused:
        check_callable(azure)
    assert str(refused.value).endswith(azure.instead)
    check_callable(PROVIDERS["openai"])


def test_a_key_that_was_written_out_is_refused_by_the_name_of_its_option():
    """The message names the provider's variable, not the key; headers have a check of their own."""
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"
    with pytest.raises(ValueError, match=r"the option 'a\.b' .* as OPENAI_API_KEY") as refused:
        refuse_keys({"model": "m", "a": {"b": key}}, "openai")
    assert key not in str(refused.value)
    refuse_keys({"model": "m", "headers": {"x": key}}, "openai")
