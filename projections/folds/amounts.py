"""Money and scores as exact decimals: a rounded sum would depend on the order of its parts."""

from decimal import Context, Decimal
from functools import lru_cache

ZERO = Decimal(0)
EXACT = Context(prec=400)
"""Enough digits for the sum of any two floats."""


@lru_cache(maxsize=4_096)
def exact(amount: float) -> Decimal:
    """Convert a float to the shortest decimal that represents it."""
    return Decimal(repr(amount)) if amount else ZERO
