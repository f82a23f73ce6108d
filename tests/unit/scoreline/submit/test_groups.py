"""Serial groups: the order within a group, and which earlier answers are recalled."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coordinator.submission import Recall, SerialPlace
from tests.unit.scoreline.submit.submission_harness import plan_of, refused, submitted


async def places(folder: Path, rows: Sequence[Any], **flags: Any) -> dict[int, SerialPlace]:
    """Return the positions of a batch's evaluations by number, without those that have no group."""
    plan = plan_of(folder, [{"input": "i", **row} for row in rows], **flags)
    made = await submitted(plan)
    return {number: each.serial for number, each in enumerate(made, 1) if each.serial}


async def test_serial_cases_follow_each_other(tmp_path):
    """Cases marked serial form one chain in the order of the dataset; others stand alone."""
    rows = [{"serial": True}, {}, {"serial": "true"}, {"serial": False}, {"serial": True}]
    assert await places(tmp_path, rows) == {3: SerialPlace(1), 5: SerialPlace(3)}


async def test_every_variant_and_repetition_has_a_group_of_its_own(tmp_path):
    """A chain never crosses from one variant or repetition to another."""
    found = await places(tmp_path, [{"serial": True}] * 2, prompt=["{input}", "- {input}"], repetitions=2)
    assert found == {number: SerialPlace(number - 4) for number in (5, 6, 7, 8)}


async def test_later_turns_recall_all_earlier_ones(tmp_path):
    """A conversation's turns follow each other, each with the history before it."""
    rows = [{"conversation": "a"}, {"conversation": 1}, {"conversation": "a"}, {"conversation": "a"}]
    assert await places(tmp_path, rows) == {
        3: SerialPlace(1, (Recall(1),)),
        4: SerialPlace(3, (Recall(1), Recall(3))),
    }


async def test_a_stored_output_is_recalled_by_the_cases_that_name_it(tmp_path):
    """Inputs name stored outputs; braces around anything else stay as they are."""
    rows = [
        {"store_output_as": "city"},
        {"input": "{ not } {country}"},
        {"input": "What is in {city}?"},
        {"store_output_as": "city"},
        {"input": "And in {city}?"},
    ]
    assert await places(tmp_path, rows) == {
        3: SerialPlace(1, (Recall(1, "city"),)),
        4: SerialPlace(3),
        5: SerialPlace(4, (Recall(4, "city"),)),
    }


async def test_a_prompt_may_name_a_stored_output(tmp_path):
    """Where only one prompt names it, only that variant recalls it; a field of the row comes first."""
    rows = [{"store_output_as": "city", "city": "none"}, {}, {"city": "Rome"}]
    found = await places(tmp_path, rows, prompt=["{input}", "{input} {city}"])
    assert found == {3: SerialPlace(1), 4: SerialPlace(2, (Recall(2, "city"),))}


async def test_the_first_case_cannot_name_a_stored_output(tmp_path):
    """A stored output is available to later cases only; before that the name is unknown."""
    rows = [{"input": "a"}, {"input": "b", "store_output_as": "city"}]
    assert "line 1: there is no column 'city'" in await refused(plan_of(tmp_path, rows, prompt=["{city}"]))


async def test_groups_that_share_a_case_are_one(tmp_path):
    """Two conversations that meet in a stored output form one chain from their beginning."""
    rows = [
        {"conversation": "a", "store_output_as": "x"},
        {"conversation": "b"},
        {"conversation": "a"},
        {"conversation": "b", "input": "{x}"},
        {"conversation": "c"},
    ]
    assert await places(tmp_path, rows) == {
        2: SerialPlace(1),
        3: SerialPlace(2, (Recall(1),)),
        4: SerialPlace(3, (Recall(1, "x"), Recall(2))),
    }


async def test_cases_left_out_leave_no_gap(tmp_path):
    """Numbers are positions in the submission: cases that the tags leave out do not count."""
    rows = [
        {"serial": True},
        {"serial": True, "tags": ["x"]},
        {"tags": ["x"]},
        {"serial": True, "tags": ["x"]},
    ]
    assert await places(tmp_path, rows, tag=["x"]) == {3: SerialPlace(1)}
