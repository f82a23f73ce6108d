"""Which cases of a batch follow each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from coordinator.submission import Recall, SerialPlace
from tests.unit.scoreline.submit.submission_harness import plan_of, submitted


async def test_serial_cases_keep_their_order_and_others_need_not_wait_for_them(tmp_path: Path):
    """The plan runs serial cases first; here each follows the one before it, beside all that is free."""
    rows = [{"serial": True}, {}, {"serial": True}, {}]
    assert await places(tmp_path, rows) == [None, None, SerialPlace(1), None]


async def test_conversations_and_stored_outputs_are_serial(tmp_path: Path):
    """The plan forces the whole run to be serial; here only those who share something, each group apart."""
    rows = [
        {"conversation": "a"},
        {"store_output_as": "city"},
        {"conversation": "a"},
        {"input": "What is in {city}?"},
        {},
    ]
    assert await places(tmp_path, rows) == [
        None,
        None,
        SerialPlace(1, (Recall(1),)),
        SerialPlace(2, (Recall(2, "city"),)),
        None,
    ]


async def places(folder: Path, rows: Sequence[Mapping[str, object]]) -> list[SerialPlace | None]:
    """Return which case each case follows, and what it recalls."""
    plan = plan_of(folder, [{"input": "i", **row} for row in rows])
    return [each.serial for each in await submitted(plan)]
