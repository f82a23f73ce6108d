"""The cost of a call: tokens times a price, from a price list.

The first pattern that matches `PROVIDER/MODEL` applies. The user's own list, a file of the same form, comes
before the built-in one; a price on the target before both. A model without a price costs nothing; that is
logged once.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from eventlog.payloads import TokenUsage
from providers.json_reader import read_json_file

logger = logging.getLogger(__name__)

VARIABLE = "EVAL_PRICES"
"""Names a file with prices of one's own."""
BATCH_DISCOUNT = 0.5
"""The share of the price that a request in a provider batch costs."""
MAX_FILE = 1024 * 1024
"""Bytes of a list of prices."""
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float


FREE = Price(0.0, 0.0)


Dollars = Annotated[float, Field(ge=0, le=1e9)]


@dataclass(frozen=True, slots=True)
class PriceRule:
    """The price of the models that a pattern fits."""

    models: str
    input: Dollars
    output: Dollars


_LINES: TypeAdapter[tuple[PriceRule, ...]] = TypeAdapter(tuple[PriceRule, ...])


def cost_of(usage: TokenUsage, price: Price | None, *, batch: bool = False) -> float:
    """Return the cost of tokens; 0 if no price is known."""
    if price is None:
        return 0.0
    whole = (usage.input_tokens * price.input + usage.output_tokens * price.output) / _MILLION
    return whole * BATCH_DISCOUNT if batch else whole


def find_price(lines: tuple[PriceRule, ...], provider: str, model: str) -> Price | None:
    """Find the price of a model."""
    name = f"{provider}/{model}"
    found = next((line for line in lines if fnmatchcase(name, line.models)), None)
    return Price(found.input, found.output) if found else None


def price_of(provider: str, model: str, environ: Mapping[str, str]) -> Price | None:
    """Find the price of a model, in the user's list or in ours; raises `ValueError` for a bad list."""
    own = read_prices(Path(environ[VARIABLE])) if environ.get(VARIABLE) else ()
    price = find_price(own + read_prices(_OURS), provider, model)
    if price is None:
        _warn_once(provider, model)
    return price


@cache
def read_prices(path: Path) -> tuple[PriceRule, ...]:
    """Read a list of prices; raises `ValueError` with a sentence."""
    try:
        return _LINES.validate_python(read_json_file(path, limit=MAX_FILE)["prices"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        why = (
            f"{error.error_count()} of its lines are wrong" if isinstance(error, ValidationError) else error
        )
        raise ValueError(
            f"{path} is no list of prices: {why}. It should be like "
            '{"prices": [{"models": "openai/*", "input": 1, "output": 2}]}'
        ) from None


@cache
def _warn_once(provider: str, model: str) -> None:
    logger.warning("no price is known: calls are counted as free", extra={"model": f"{provider}/{model}"})


_OURS = Path(__file__).with_name("prices.json")
