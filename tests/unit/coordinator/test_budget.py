"""Pure decisions on when a batch should pause: budget and failures in a row."""

from decimal import Decimal

import pytest

from coordinator.budget import Streak, budget_words, dollars, more, over, overspent, permanent_streak
from projections.folds.progress import Progress
from projections.ledger.batch import Budget
from projections.ledger.contract import FailedEvaluation

REFUSED = FailedEvaluation("authentication", "the key was refused", was_tried=True, is_at_once=True)
SPENT_RETRIES = REFUSED._replace(kind="transient", is_at_once=False)
NEVER_TRIED = REFUSED._replace(kind="missing", was_tried=False)


UNKNOWN = ", of it $0.0004 for calls whose cost is unknown"


def budget(limit: str, spent: str) -> Budget:
    return Budget(Decimal(limit), None, Decimal(spent))


# Spend.


@pytest.mark.parametrize(
    ("held", "text", "flags"),
    [
        (Budget(), None, ()),
        (Budget(spent_usd=Decimal(1_000), spent_tokens=10**9), None, ()),
        (budget("5", "4.99"), None, ()),
        (budget("5", "5"), "budget $5.00: $5.00 spent", ("--max-cost", "10")),
        (budget("5", "5.02"), "budget $5.00: $5.02 spent", ("--max-cost", "10")),
        (budget("5.50", "20.3"), "budget $5.50: $20.30 spent", ("--max-cost", "41")),
        (budget("0.005", "0.0051"), "budget $0.005: $0.0051 spent", ("--max-cost", "0.01")),
        (Budget(None, 1_000, Decimal(9), 999), None, ()),
        (
            Budget(None, 1_000, Decimal(9), 1_000),
            "budget 1,000 tokens: 1,000 spent",
            ("--max-tokens", "2000"),
        ),
        (
            Budget(None, 10, Decimal(0), 25),
            "budget 10 tokens: 25 spent",
            ("--max-tokens", "26"),
        ),
        (
            Budget(Decimal(1), 10, Decimal(1), 10),
            "budget $1.00: $1.00 spent",
            ("--max-cost", "2", "--max-tokens", "20"),
        ),
        (
            Budget(Decimal("0.05"), None, Decimal("0.0493"), 0, Decimal("0.002")),
            "budget $0.05: $0.0493 spent, the next call may cost up to $0.002",
            ("--max-cost", "0.1"),
        ),
        (
            Budget(Decimal("0.01"), None, Decimal(0), 0, Decimal("0.0205")),
            "budget $0.01: $0.00 spent, the next call may cost up to $0.0205",
            ("--max-cost", "0.041"),
        ),
        (Budget(Decimal("0.05"), None, Decimal("0.0493"), 0, Decimal("0.0007")), None, ()),
        (
            Budget(None, 100, Decimal(0), 90, Decimal(1), 20),
            "budget 100 tokens: 90 spent, the next call may take up to 20",
            ("--max-tokens", "200"),
        ),
        (
            Budget(Decimal("0.04"), None, Decimal("0.0396"), 0, Decimal("0.002"), 0, Decimal("0.0004")),
            f"budget $0.04: $0.0396 spent{UNKNOWN}, the next call may cost up to $0.002",
            ("--max-cost", "0.08"),
        ),
        (
            Budget(None, 100, Decimal(0), 100, unrecorded_tokens=7),
            "budget 100 tokens: 100 spent, of it 7 for calls whose usage is unknown",
            ("--max-tokens", "200"),
        ),
    ],
)
def test_a_budget_is_spent_once_nothing_of_it_is_left(held, text, flags):
    """The text has both amounts; the flags name the options that allow the batch to continue."""
    assert overspent(held) == text
    assert more(held) == flags


@pytest.mark.parametrize(
    ("amount", "written"),
    [("0", "$0.00"), ("0.5", "$0.50"), ("0.0125", "$0.0125"), ("1234.5", "$1,234.50"), ("0.1", "$0.10")],
)
def test_amounts_are_formatted_for_people(amount, written):
    """Two decimals, and more where cents would hide the amount."""
    assert dollars(Decimal(amount)) == written


def test_the_excess_over_a_budget_is_an_amount():
    """In dollars and tokens; none without a limit, or at exactly the limit."""
    assert over(Budget(Decimal(1), 10, Decimal("1.25"), 12)) == (Decimal("0.25"), 2)
    assert over(Budget(Decimal(1), 10, Decimal(1), 10)) == (Decimal(0), 0)
    assert over(Budget(None, None, Decimal(9), 9)) == (Decimal(0), 0)


def test_a_budget_is_described_in_words():
    """The description is stored with an operator's change."""
    assert budget_words(Budget(Decimal(10))) == "at most $10.00, any tokens"
    assert budget_words(Budget(max_tokens=5_000)) == "any cost, at most 5,000 tokens"


# Failures in a row.


def counted(ended: int, failed: int) -> Progress:
    return Progress(completed=ended - failed, failed=failed)


def length(*cycles: tuple[int, int]) -> int:
    streak = Streak.begin(counted(*cycles[0]))
    for cycle in cycles[1:]:
        streak = streak.go_on(counted(*cycle))
    return streak.length


@pytest.mark.parametrize(
    ("cycles", "expected"),
    [
        ([(0, 0)], 0),
        ([(9, 9)], 0),
        ([(0, 0), (3, 3), (7, 7)], 7),
        ([(5, 0), (8, 3), (9, 4)], 4),
        ([(0, 0), (5, 4), (6, 5)], 1),
        ([(0, 0), (4, 4), (5, 4), (7, 6)], 2),
        ([(0, 0), (9, 9), (4, 4), (6, 6)], 2),
    ],
    ids=[
        "nothing has ended",
        "earlier failures do not count",
        "all failures since",
        "earlier completions do not end the streak",
        "a completion meanwhile ends the streak",
        "a completion alone ends the streak",
        "reopened evaluations restart the streak",
    ],
)
def test_failures_are_in_a_row_while_nothing_else_ends(cycles, expected):
    """The counters of two cycles determine the streak."""
    assert length(*cycles) == expected


def test_enough_permanent_failures_are_a_reason_to_pause():
    """The reason has the error of the newest failure."""
    assert permanent_streak([REFUSED] * 3, after=3) == (
        "3 evaluations in a row failed: authentication: the key was refused"
    )
    assert permanent_streak([REFUSED] * 2, after=3) is None


def test_a_retried_fault_among_the_newest_is_no_reason_to_pause():
    """Older failures are ignored."""
    assert permanent_streak([REFUSED, SPENT_RETRIES, REFUSED], after=3) is None
    assert permanent_streak([REFUSED, REFUSED, SPENT_RETRIES], after=2)


def test_evaluations_that_were_never_tried_do_not_count():
    """A serial group whose first turn failed is one failure, however long it is."""
    assert permanent_streak([NEVER_TRIED] * 10, after=3) is None
    assert permanent_streak([NEVER_TRIED, REFUSED, NEVER_TRIED, REFUSED], after=2)


def test_a_long_error_is_cut_and_its_first_line_is_reported():
    """It is shown in one line of a screen, and stored in a column."""
    long = REFUSED._replace(kind="http", message="a" + "b" * 5_000 + "\nin line 3")
    text = permanent_streak([long], after=1)
    assert text
    assert text.startswith("an evaluation failed: http: abbb")
    assert (len(text), text[-1]) == (300, "…")
    assert permanent_streak([REFUSED._replace(message="\n")], after=2) is None
    assert permanent_streak([REFUSED._replace(message="no\nin line 3")] * 2, after=2) == (
        "2 evaluations in a row failed: authentication: no"
    )
    assert permanent_streak([REFUSED._replace(message="\n")] * 2, after=2) == (
        "2 evaluations in a row failed: authentication"
    )
