"""The endpoint of a model, its key and its rate limit: from options and an environment, without I/O.

A key is only ever in the environment. It is left out of every representation; a rate limit is named by a
digest of it, or by the name that the user gives to the account.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import blake2b
from urllib.parse import urlsplit

from pydantic import JsonValue

from providers.table import PROVIDERS, LimitScope, Provider

NO_ACCOUNT = "local"
EVERYTHING = "all"
"""The scope of limits that count all models together."""
_HOLDS_KEY = re.compile(
    r"(?:^|[-_])(?:key|api[-_]?key|authorization|password|secret|token)$", re.IGNORECASE
)
_LOOKS_LIKE_KEY = re.compile(
    # With digits in it: `sk-learn` and the like are words.
    r"\b(?:sk|pk|xai|gsk|csk|fw|r8)[-_](?=[\w-]*\d[\w-]*\d)[\w-]{16,}|\bAIza[\w-]{20,}"
)
_SENDABLE = re.compile(r"[\x21-\x7e]*")


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """The address, key and options needed to call a model."""

    provider: Provider
    model: str
    base_url: str = field(repr=False)
    key: str = field(repr=False)
    key_variable: str = ""
    lane: str = ""
    """Names the rate limit: provider, account, scope."""

    @property
    def place(self) -> str:
        """The address, without what may be a password."""
        parsed = urlsplit(self.base_url)
        return f"{parsed.scheme}://{parsed.netloc.rpartition('@')[2]}{parsed.path}"


def endpoint_of(name: str, options: Mapping[str, JsonValue], environ: Mapping[str, str]) -> ModelEndpoint:
    """Resolve the endpoint of a model; raises `ValueError` with a message, such as for a missing key."""
    provider = PROVIDERS[name]
    if provider.sdk is None:
        raise ValueError(f"{provider.title} can't be called by its name: {provider.instead}")
    model = str(options.get("model") or "")
    base_url = str(options.get("base_url") or environ.get(provider.base_url_variable) or provider.base_url)
    variable = str(options.get("key_variable") or provider.key_variable)
    key = environ.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise ValueError(
            f"{provider.title} needs a key: put it into the executors' environment, as {variable}"
        )
    if not _SENDABLE.fullmatch(key):
        raise ValueError(f"the key in {variable} has a character that can't be sent: copy it again")
    account = str(options.get("account") or _digest(key))
    lane = f"{name}:{account}:{scope_of(provider, model, base_url)}"
    return ModelEndpoint(provider, model, base_url, key, variable, lane)


def scope_of(provider: Provider, model: str, base_url: str = "") -> str:
    """Return the name of the limit within an account, with the host unless it is the provider's."""
    if LimitScope.GROUP in provider.scope:
        scope = next((group for group in provider.groups if fnmatchcase(model, group)), model)
    elif provider.scope & {LimitScope.MODEL, LimitScope.DEPLOYMENT}:
        scope = model
    else:
        scope = EVERYTHING
    host = urlsplit(base_url).netloc.rpartition("@")[2]
    return scope if host in ("", urlsplit(provider.base_url).netloc) else f"{scope}@{host}"


def find_key(value: JsonValue, name: str = "") -> str | None:
    """Return the option that holds a key in plain text, if one does."""
    match value:
        case str():
            last = name.rpartition(".")[2]
            return (
                name
                if value and "$" not in value and (_HOLDS_KEY.search(last) or _LOOKS_LIKE_KEY.search(value))
                else None
            )
        case dict():
            inner = (find_key(each, f"{name}.{key}" if name else key) for key, each in value.items())
        case list():
            inner = (find_key(each, f"{name}.{number}") for number, each in enumerate(value))
        case _:
            return None
    return next((found for found in inner if found is not None), None)


def _digest(key: str) -> str:
    if not key:
        return NO_ACCOUNT
    return blake2b(key.encode(), digest_size=4, key=b"scoreline lane").hexdigest()
