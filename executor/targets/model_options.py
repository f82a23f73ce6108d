"""Options shared by targets and evaluators that call models, with their validation."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from domain.batch_spec import Options
from executor.options import OptionModel
from providers.clients import check_sdk
from providers.endpoint import find_key
from providers.headers import literal_parameter
from providers.requests import refuse_parameters
from providers.table import PROVIDERS, Provider


def _is_a_key_variable(name: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.search("KEY|TOKEN", name):
        raise ValueError("it must be the name of a variable with KEY or TOKEN in it")
    if name.startswith("EVAL_"):
        raise ValueError("EVAL_ names are Scoreline's own")
    return name


def _is_an_address(url: str) -> str:
    parsed = urlsplit(url)
    if parsed.scheme not in ("http", "https") or not parsed.hostname:
        raise ValueError("it must start with http:// or https:// and name a host")
    if "@" in parsed.netloc:
        raise ValueError("it would be stored with its password; write the key's variable as `key_variable`")
    if parameter := literal_parameter(url):
        raise ValueError(
            f"the parameter {parameter} would be stored with the batch; send it in a header as $NAME"
        )
    return url


def _leave_the_reply_alone(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    refuse_parameters(parameters)
    return parameters


ModelName = Annotated[str, StringConstraints(max_length=300, pattern=r"^[A-Za-z0-9_.:/@+#-]+$")]
Account = Annotated[str, StringConstraints(max_length=100, pattern=r"^[A-Za-z0-9_.@-]+$")]
BaseUrl = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_is_an_address)]
KeyVariable = Annotated[str, StringConstraints(max_length=200), AfterValidator(_is_a_key_variable)]
Parameters = Annotated[dict[str, JsonValue], AfterValidator(_leave_the_reply_alone)]


class PriceOptions(OptionModel):
    """US dollars for a million tokens."""

    input: float = Field(ge=0, le=1e6)
    output: float = Field(ge=0, le=1e6)


def check_callable(provider: Provider) -> None:
    """Refuse what can't be called from here; raises `ValueError` with a sentence."""
    if provider.sdk is None:
        raise ValueError(f"{provider.title} can't be called by its name: {provider.instead}")
    check_sdk(provider)


def refuse_keys(options: Options, provider: str) -> None:
    """Refuse a key that was written out; raises `ValueError`, which names the option and not the key."""
    others = {name: value for name, value in options.items() if name != "headers"}  # checked by themselves
    if found := find_key(others):
        variable = PROVIDERS[provider].key_variable or "the environment"
        raise ValueError(
            f"the option {found!r} holds what looks like a key, and specs are stored: "
            f"put it into the executors' environment, as {variable}"
        )
