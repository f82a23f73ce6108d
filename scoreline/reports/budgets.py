"""The budget of a batch: the flags that change it, and the lines that show what is spent."""

from collections.abc import Iterator
from typing import Any

from coordinator.budget import BudgetChange, dollars, more, over, unknown_cost, unknown_tokens
from projections.queries.batches import BatchSnapshot
from scoreline.command_error import CommandError
from scoreline.formatting import money
from scoreline.submit.spec.keys import KEYS

NO_LIMIT = "none"


def read_budget(*, max_cost: str | None, max_tokens: str | None) -> BudgetChange:
    """Parse the flags of a budget; raises `CommandError` unless each is an amount or `none`."""
    budget = BudgetChange()
    if max_cost is not None:
        budget["max_cost_usd"] = None if max_cost == NO_LIMIT else _read("max_cost", max_cost)
    if max_tokens is not None:
        whole = int(max_tokens) if max_tokens.isascii() and max_tokens.isdigit() else max_tokens
        budget["max_tokens"] = None if max_tokens == NO_LIMIT else _read("max_tokens", whole)
    return budget


def _read(key: str, value: str | int) -> Any:  # noqa: ANN401 - the type depends on the key
    try:
        return KEYS[key](value)
    except ValueError as error:
        raise CommandError(f"--{key.replace('_', '-')} {error}, and not `{NO_LIMIT}` either") from None


def spending(snapshot: BatchSnapshot) -> Iterator[str]:
    """Return a line for each limit with the amount spent; the cost alone where there is no limit."""
    budget = snapshot.budget
    usd, tokens = over(budget)
    if budget.max_cost_usd is not None:
        exceeded = f", over budget by {dollars(usd)}" if usd else ""
        spent = f"{dollars(budget.spent_usd)} of {dollars(budget.max_cost_usd)} spent"
        yield f"{spent}{unknown_cost(budget)}{exceeded}"
    elif budget.spent_usd:
        yield f"{money(float(budget.spent_usd))}{unknown_cost(budget)}"
    if budget.max_tokens is not None:
        exceeded = f", over budget by {tokens:,}" if tokens else ""
        spent = f"{budget.spent_tokens:,} of {budget.max_tokens:,} tokens spent"
        yield f"{spent}{unknown_tokens(budget)}{exceeded}"


def flags_to_go_on(snapshot: BatchSnapshot) -> tuple[str, ...]:
    """Return the flags that `batch resume` needs besides the id."""
    return more(snapshot.budget)
