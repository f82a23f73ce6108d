"""`scoreline batch compare` on a real database."""

from collections.abc import AsyncIterator

import pytest

from eventlog import payloads as p
from scoreline.command_error import CommandError
from tests.builders import history
from tests.integration.scoreline.batch_harness import Harness, harness, spec


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Harness]:
    async with harness(postgres_url, redis_url) as made:
        yield made


def cases(*names: str) -> list[p.Case]:
    return [p.Case(id=name) for name in names]


async def test_flips_are_matched_by_case_id(here: Harness) -> None:
    """Cases are paired by id, whatever their order, and unpaired cases are counted."""
    await here.submit(
        "a", ["passed", "failed", "passed", "passed", "passed"], cases=cases("1", "2", "3", "4", "gone")
    )
    await here.submit(
        "b", ["dead", "failed", "passed", "passed", "failed"], cases=cases("4", "3", "2", "1", "new")
    )
    [found] = await here.documents("compare", "a", "b")
    assert (found["pairs"], found["newly_failing"], found["newly_passing"], found["both_passed"]) == (
        4,
        2,
        1,
        1,
    )
    assert (found["unjudged"], found["lost"]) == (0, 1)
    assert (found["left"]["only_here"], found["right"]["only_here"]) == (1, 1)
    assert (found["left"]["pass_rate"], found["right"]["pass_rate"]) == (0.8, 0.4)
    assert [
        (flip["change"], flip["case_id"], flip["left_id"], flip["right_id"]) for flip in found["flips"]
    ] == [
        ("newly_failing", "3", "a.00000003", "b.00000002"),
        ("newly_failing", "4", "a.00000004", "b.00000001"),
        ("newly_passing", "2", "a.00000002", "b.00000003"),
    ]
    assert (found["p_value"], found["pass_rate_difference"], found["score_difference"]) == (1.0, -0.25, 0.0)


async def test_newly_failing_cases_are_listed_first(here: Harness) -> None:
    """The text has intervals and the p-value; `--limit` restricts the listing, not the counts."""
    names = cases(*(f"case-{number}" for number in range(8)))
    await here.submit("a", ["passed"] * 7 + ["failed"], cases=names)
    await here.submit("b", ["failed"] * 7 + ["passed"], cases=names)
    ran = await here.run("compare", "a", "b", "--limit", "2")
    assert ran.exit_code == 0, ran.exception
    text = ran.stdout
    assert "7 newly failing, 1 newly passing: may well be chance (p = 0.0703, exact McNemar test)" in text
    assert "87.5%" in text
    assert "pass rate of the pairs: -75.0 points" in text
    assert text.index("newly failing: 7, the first 2") < text.index("newly passing: 1")
    assert "case-1  a.00000002 → b.00000002" in text
    assert "case-2 " not in text


async def test_a_batch_compared_with_itself_has_no_flips(here: Harness) -> None:
    """A batch equals itself, and `--fail-on-regression` exits with 101 only for a worse one."""
    await here.submit("a", ["passed", "failed"])
    [found] = await here.documents("compare", "a", "a")
    assert (await here.run("compare", "a", "a", "--fail-on-regression")).exit_code == 0
    await here.submit("worse", ["dead", "failed"])
    assert (await here.run("compare", "a", "worse", "--fail-on-regression")).exit_code == 101
    assert (found["pairs"], found["flips"], found["p_value"]) == (2, [], 1.0)


async def test_variants_are_paired_by_target(here: Harness) -> None:
    """Two variants against one: the target's name decides, and the unpaired variant is listed."""
    await here.submit("a", ["passed", "passed"], about=spec("small", "large"), variants=2)
    await here.submit("b", ["passed", "failed"], about=spec("large"))
    [found] = await here.documents("compare", "a", "b")
    assert (found["paired_by"], found["pairs"], found["left"]["evaluations"]) == ("target and prompt", 2, 2)
    [flip] = found["flips"]
    assert (flip["left_id"], flip["left_variant"], flip["right_variant"]) == ("a.00000004", 1, 0)
    assert "only in the first, not compared: small" in (await here.run("compare", "a", "b")).stdout
    await here.submit("c", ["passed"], about=spec("other", prompts=("repeat {input}",)))
    ran = await here.run("compare", "a", "c")
    assert isinstance(ran.exception, CommandError)
    assert "no variant in common: small, large there, other here" in str(ran.exception)


async def test_external_batches_are_paired_by_the_cases_in_their_events(here: Harness) -> None:
    """Repeated cases are paired in the order of their evaluations."""
    for batch_id, verdicts in {"x": ("passed", "passed"), "y": ("passed", "failed")}.items():
        for number, verdict in enumerate(verdicts):
            done = p.Completed(verdict=verdict)  # type: ignore[arg-type]  # one of the two
            await here.place.store(
                history(
                    "queued provisioning running completed",
                    evaluation_id=f"{batch_id}-{number}",
                    batch_id=batch_id,
                    completed=done,
                )
            )
    [found] = await here.documents("compare", "x", "y")
    assert (found["pairs"], found["newly_failing"], found["both_passed"]) == (2, 1, 1)
