"""Headers and queries that name variables: a spec holds `$NAME`, the value is filled in for a request.

    Authorization: Bearer $SERVICE_TOKEN
    https://example.org/answer?key=$SERVICE_API_KEY

The value is in no spec, event, log or message: it is added to the secrets of the process before it is used.
"""

import os
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from eventlog.redaction import KNOWN
from eventlog.secret_sources import SECRET_NAME, basic_password

VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
SENDABLE = re.compile(r"[\x20-\x7e]*")


class UnfilledHeader(ValueError):  # noqa: N818 - what the header is
    """A header or query whose value can't be filled in here; names the variable, never a value."""


def fill_in(headers: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Put in what `$NAME` stands for; raises `UnfilledHeader`."""
    KNOWN.add(secrets_of(headers, environ))
    return {name: _filled(f"header {name}", value, environ) for name, value in headers.items()}


def fill_in_query(url: str, environ: Mapping[str, str]) -> str:
    """Put in what `$NAME` in the query of a URL stands for, percent-encoded; raises `UnfilledHeader`."""
    parsed = urlsplit(url)
    if "$" not in parsed.query:
        return url
    KNOWN.add(secrets_of({"query": parsed.query}, environ))
    names = environ.keys() & set(VARIABLE.findall(parsed.query))
    encoded = {name: quote(os.fsencode(environ[name].strip()), safe="") for name in names}
    return urlunsplit(parsed._replace(query=_filled("query of the url", parsed.query, encoded)))


def literal_parameter(url: str) -> str | None:
    """Return the parameter of a URL's query that contains a key in plain text, if there is one."""
    if "://" not in url or "?" not in url or re.search(r"\s", url):
        return None
    try:
        pairs = parse_qsl(urlsplit(url).query)
    except ValueError:
        return None
    secret = (name for name, value in pairs if SECRET_NAME.search(name) and _is_written_out(value))
    return next(secret, None)


def _is_written_out(value: str) -> bool:
    return not re.search(r"\$[A-Za-z_]|\{", value) and not re.fullmatch(r"[0-9]{1,9}|true|false", value)


def secrets_of(headers: Mapping[str, str], environ: Mapping[str, str]) -> frozenset[str]:
    """Collect what headers take from the environment."""
    names = {name for value in headers.values() for name in VARIABLE.findall(value)}
    values = {environ[name].strip() for name in names if name in environ}
    return frozenset(values | {password for each in values if (password := basic_password(each))})


def _filled(place: str, value: str, environ: Mapping[str, str]) -> str:
    def put_in(match: re.Match[str]) -> str:
        if match[1] not in environ:
            raise UnfilledHeader(
                f"the {place} needs ${match[1]}, which is not set in this process: "
                f"export {match[1]} where it is started"
            )
        return environ[match[1]]

    filled = VARIABLE.sub(put_in, value)
    if not SENDABLE.fullmatch(filled):
        raise UnfilledHeader(f"the value for the {place} has a character that can't be sent in a header")
    return filled
