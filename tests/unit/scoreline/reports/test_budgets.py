"""The flags of a budget, and the lines that show what is spent."""

from decimal import Decimal

import pytest

from scoreline.command_error import CommandError
from scoreline.reports.budgets import flags_to_go_on, read_budget, spending
from tests.unit.scoreline.reports.snapshots import make_snapshot


def test_a_flag_that_is_not_given_leaves_its_limit_unchanged() -> None:
    """`none` removes a limit, which differs from a flag that is absent."""
    assert read_budget(max_cost=None, max_tokens=None) == {}
    assert read_budget(max_cost="none", max_tokens=None) == {"max_cost_usd": None}
    assert read_budget(max_cost="$2.50", max_tokens="7") == {
        "max_cost_usd": Decimal("2.50"),
        "max_tokens": 7,
    }


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"max_cost": "much", "max_tokens": None}, "--max-cost must be an amount in dollars"),
        ({"max_cost": "0", "max_tokens": None}, "--max-cost must be an amount in dollars"),
        ({"max_cost": None, "max_tokens": "1.5"}, "--max-tokens "),
        ({"max_cost": None, "max_tokens": "٣"}, "--max-tokens "),
        ({"max_cost": None, "max_tokens": "0"}, "--max-tokens "),
    ],
)
def test_an_invalid_amount_is_refused_with_the_name_of_its_flag(
    flags: dict[str, str | None], message: str
) -> None:
    """The message has the word that removes the limit."""
    with pytest.raises(CommandError) as caught:
        read_budget(**flags)
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(", and not `none` either")


def test_each_limit_has_a_line_with_what_is_spent() -> None:
    """An exceeded limit shows by how much; an estimate is named as such."""
    within = make_snapshot(max_cost_usd=Decimal(5), cost_usd=Decimal(2), max_tokens=1_000, tokens=10)
    assert list(spending(within)) == ["$2.00 of $5.00 spent", "10 of 1,000 tokens spent"]
    over = make_snapshot(
        max_cost_usd=Decimal(5), cost_usd=Decimal(6), unrecorded_usd=Decimal(1), max_tokens=10, tokens=1_011
    )
    assert list(spending(over)) == [
        "$7.00 of $5.00 spent, of it $1.00 for calls whose cost is unknown, over budget by $2.00",
        "1,011 of 10 tokens spent, over budget by 1,001",
    ]


def test_without_a_limit_only_a_cost_has_a_line() -> None:
    """A batch that cost nothing has none."""
    assert list(spending(make_snapshot(cost_usd=Decimal("0.5"), tokens=7))) == ["$0.5"]
    assert list(spending(make_snapshot(tokens=7))) == []


def test_a_batch_resumes_with_a_higher_limit_only_if_its_budget_is_spent() -> None:
    """The suggested limit is twice the old one."""
    assert flags_to_go_on(make_snapshot(max_tokens=100, tokens=99)) == ()
    assert flags_to_go_on(make_snapshot(max_tokens=100, tokens=100)) == ("--max-tokens", "200")
