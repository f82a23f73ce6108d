"""`scoreline batch dlq` on real servers."""

import json

from tests.integration.scoreline.batch_harness import WILD, Harness


async def test_dead_letters_are_listed_with_reason_and_retry_command(here: Harness) -> None:
    """Each has kind, message, attempt and case; escape sequences in messages take no effect."""
    await here.submit("nightly", ["passed", "dead", "timed_out"])
    letters = {each["evaluation_id"]: each for each in await here.documents("dlq", "nightly")}
    assert set(letters) == {"nightly.00000002", "nightly.00000003"}
    dead, late = letters["nightly.00000002"], letters["nightly.00000003"]
    assert (dead["case_id"], dead["kind"], dead["message"]) == ("case-2", "permanent", "no such model")
    assert (late["kind"], late["message"]) == ("timed_out", "the task limit of 60 s passed")
    await here.place.alter(
        "UPDATE scorecards SET error = %s WHERE evaluation_id = 'nightly.00000002'",
        json.dumps({"kind": "permanent", "message": WILD}),
    )
    ran = await here.run("dlq", "nightly", "--limit", "1")
    assert ran.exit_code == 0
    assert "2 dead letters: 1 permanent, 1 timed_out" in ran.stdout
    assert "… and 1 more" in ran.stdout
    assert "scoreline batch retry nightly\n" in ran.stdout
    assert "scoreline batch retry nightly --only nightly.0000000" in ran.stdout
    assert "\x1b" not in (await here.run("dlq", "nightly")).stdout
    await here.submit("fine", ["passed"])
    assert "fine has no dead letters." in (await here.run("dlq", "fine")).stdout


async def test_the_message_of_a_dead_letter_is_shown_with_its_advice(here: Harness) -> None:
    """A long message is not cut before the advice at its end."""
    await here.submit("nightly", ["dead"])
    await here.place.alter(
        "UPDATE scorecards SET error = %s WHERE evaluation_id = 'nightly.00000001'",
        json.dumps({"kind": "no_sandbox", "message": f"{'there is no sandbox, ' * 8}install-bubblewrap"}),
    )
    assert "install-bubblewrap" in (await here.run("dlq", "nightly")).stdout
