"""Resolving the id of an evaluation, and following one through outages."""

import pytest

from scoreline.command_error import CommandError
from scoreline.reports.replay.lookup import find, nearest, probes
from tests.unit.scoreline.reports.replay.known_evaluations import SceneSources, scene


async def test_an_attempt_follows_an_at_sign():
    """`ID@1` is the first attempt of ID."""
    resolved = await find(SceneSources(scene("e-1")), "e-1@1")
    assert (resolved.history.evaluation_id, resolved.attempt) == ("e-1", 1)


async def test_an_id_that_contains_an_at_sign_takes_precedence():
    """`e-1@1` resolves to the evaluation of that id before attempt 1 of `e-1`."""
    resolved = await find(SceneSources(scene("e-1"), scene("e-1@1")), "e-1@1")
    assert (resolved.history.evaluation_id, resolved.attempt) == ("e-1@1", None)


@pytest.mark.parametrize("text", ["e-1@", "@1", "e-1@x", "e-2@1"])
async def test_a_malformed_attempt_is_an_unknown_id(text: str):
    """Text that is neither an id nor ID@ATTEMPT raises a problem."""
    with pytest.raises(CommandError, match="No evaluation"):
        await find(SceneSources(scene("e-1")), text)


async def test_an_unknown_attempt_is_reported_with_the_existing_ones():
    """The message lists the attempts of the evaluation."""
    with pytest.raises(CommandError, match="e-1 has no attempt 3; there is: 1"):
        await find(SceneSources(scene("e-1")), "e-1@3")


async def test_the_id_of_a_batch_is_reported_as_such():
    """The message has the command that shows the batch."""
    with pytest.raises(CommandError, match="It is a batch: scoreline replay --batch b-1 --summary"):
        await find(SceneSources(scene("e-1"), batches=("b-1",)), "b-1")


async def test_bytes_that_are_not_utf_8_are_rejected():
    """Invalid UTF-8 from a shell raises a problem, not an encoding error."""
    with pytest.raises(CommandError, match="not valid UTF-8"):
        await find(SceneSources(), "e-\udcff")


def test_the_nearest_ids_come_first_and_dissimilar_ones_are_left_out():
    """Ids are ranked by similarity, regardless of case."""
    near = nearest("Demo-0012", ["demo-0012", "demo-0013", "zebra", "demo-9"])
    assert near == ["demo-0012", "demo-0013", "demo-9"]


def test_probes_are_the_text_its_cases_and_its_prefixes():
    """A prefix finds ids with a typo near the end; both cases find ids typed in the wrong case."""
    positions = probes("Abcd")
    assert {"Abcd", "abcd", "ABCD", "A", "Ab", "Abc"} <= set(positions)
