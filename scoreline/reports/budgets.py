"""The budget of a batch: what people type, and what they are told."""

from collections.abc import Iterator
from typing import Any

from coordinator.budget import dollars, more, over, unknown_cost, unknown_tokens
from coordinator.operations import Budget
from projections.queries.batches import BatchSnapshot
from scoreline.formatting import money
from scoreline.problem import Problem
from scoreline.submit.spec.keys import KEYS

NO_LIMIT = "none"


def read_budget(*, max_cost: str | None, max_tokens: str | None) -> Budget:
    """Read what is to be changed; raises `Problem` for what is neither an amount nor `none`."""
    budget = Budget()
    if max_cost is not None:
        budget["max_cost_usd"] = None if max_cost == NO_LIMIT else _read("max_cost", max_cost)
    if max_tokens is not None:
        whole = int(max_tokens) if max_tokens.isascii() and max_tokens.isdigit() else max_tokens
        budget["max_tokens"] = None if max_tokens == NO_LIMIT else _read("max_tokens", whole)
    return budget


def _read(key: str, value: str | int) -> Any:  # noqa: ANN401 - what the key means
    try:
        return KEYS[key](value)
    except ValueError as error:
        raise Problem(f"--{key.replace('_', '-')} {error}, and not `{NO_LIMIT}` either") from None


def spending(snapshot: BatchSnapshot) -> Iterator[str]:
    """Say what was spent, and of how much."""
    purse = snapshot.purse
    usd, tokens = over(purse)
    if purse.max_cost_usd is not None:
        exceeded = f", over budget by {dollars(usd)}" if usd else ""
        spent = f"{dollars(purse.spent_usd)} of {dollars(purse.max_cost_usd)} spent"
        yield f"{spent}{unknown_cost(purse)}{exceeded}"
    elif purse.spent_usd:
        yield f"{money(float(purse.spent_usd))}{unknown_cost(purse)}"
    if purse.max_tokens is not None:
        exceeded = f", over budget by {tokens:,}" if tokens else ""
        spent = f"{purse.spent_tokens:,} of {purse.max_tokens:,} tokens spent"
        yield f"{spent}{unknown_tokens(purse)}{exceeded}"


def flags_to_go_on(snapshot: BatchSnapshot) -> tuple[str, ...]:
    """Write what `batch resume` needs besides the id."""
    return more(snapshot.purse)
