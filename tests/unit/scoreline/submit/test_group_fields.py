"""Fields of serial groups: their limits and errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.payloads import Case
from scoreline.submit import groups
from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.group_fields import GroupFieldReader, GroupFields
from scoreline.submit.groups import DisjointGroups, EvaluationNumbering, SerialLinker
from tests.unit.scoreline.submit.submission_harness import plan_of, refused


def test_groups_and_turns_are_limited(monkeypatch):
    """What a submission keeps in memory of its groups is bounded, and the error has the remedy."""
    monkeypatch.setattr(groups, "MAX_TURNS", 3)
    sequencing = SerialLinker(DisjointGroups())
    for case in range(1, 4):
        sequencing.next(case, GroupFields(conversation="long"))
    with pytest.raises(Unfit, match="'long' has more than 3 turns: split it"):
        sequencing.next(4, GroupFields(conversation="long"))
    monkeypatch.setattr("scoreline.submit.group_fields.MAX_GROUPS", 5)
    for case in range(5, 9):
        sequencing.next(case, GroupFields(conversation=f"c{case}"))
    with pytest.raises(Unfit, match="more than 5 conversations"):
        sequencing.next(9, GroupFields(conversation="c9"))


GROUP_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "serial": st.booleans(),
        "conversation": st.sampled_from("abc"),
        "store_output_as": st.sampled_from(["x", "y"]),
        "input": st.sampled_from(["i", "{x}", "{x} {y}"]),
    },
)


@given(st.lists(GROUP_FIELDS, max_size=12))
def test_tied_cases_form_one_chain(rows):
    """Of two cases that share a tie the later waits for the earlier, and for all it recalls."""
    reading, ties = GroupFieldReader([frozenset()]), DisjointGroups()
    marked = [reading.next(Case(id="c", input=row.get("input", "i"), metadata=row)) for row in rows]
    for marks in marked:
        ties.join(marks.keys)
    sequencing, grid = SerialLinker(ties), EvaluationNumbering(targets=1, prompts=1, repetitions=1)
    before: dict[int, set[int]] = {}
    for number, marks in enumerate(marked, 1):
        links = sequencing.next(number, marks)
        place = links.place(grid, 0, 1) if links else None
        before[number] = {place.follows, *before[place.follows]} if place else set()
        tied = {n for n, earlier in enumerate(marked[: number - 1], 1) if {*earlier.keys} & {*marks.keys}}
        assert tied <= before[number]
        assert (
            {recall.number for recall in place.recalls} <= before[number] if place else not any(marks.uses)
        )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"serial": 3}, "`serial` must be true or false"),
        ({"conversation": [1]}, "`conversation` must be a text"),
        ({"store_output_as": "a b"}, "`store_output_as` must be a name"),
        ({"store_output_as": "input"}, "can't be 'input'"),
    ],
)
async def test_an_invalid_group_field_is_refused(tmp_path, row, message):
    """Group fields are checked like every other field."""
    assert message in await refused(plan_of(tmp_path, [{"input": "i"}, {"input": "i", **row}]))
