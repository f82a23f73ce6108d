"""The key under which an answer is cached."""

from typing import Any

from tests.unit.scoreline.submit.submission_harness import plan_of, submitted


async def test_a_cache_key_covers_all_that_decides_the_answer(tmp_path):
    """The same question has the same key in any batch; prompt, target, case and repetition change it."""

    async def keys(row: dict[str, Any], **flags: Any) -> list[Any]:
        plan = plan_of(tmp_path, [row], cache=True, **flags)
        return [each.cache_key for each in await submitted(plan)]

    row = {"id": "a", "input": "x"}
    first, second = await keys(row, repetitions=2)
    assert len(first) == 64
    assert await keys(row, name="other") == [first]
    others = [
        *await keys(row, prompt=["- {input}"]),
        *await keys(row, target=[{"type": "simulated", "seed": 1}]),
        *await keys({**row, "level": 2}),
    ]
    assert len({first, second, *others}) == 5


async def test_a_case_that_depends_on_an_answer_has_no_cache_key(tmp_path):
    """A prompt that is not known yet can't be looked up; one that only waits can."""
    rows: list[dict[str, Any]] = [
        {"serial": True},
        {"serial": True},
        {"conversation": 1},
        {"conversation": 1},
    ]
    made = await submitted(plan_of(tmp_path, [{"input": "i", **row} for row in rows], cache=True))
    assert [bool(each.cache_key) for each in made] == [True, True, True, False]
