"""The model has teeth: without a rule that is needed, some scenario shows which promise it kept."""

import pytest

from tests.protocol_model.invariants import Invariant
from tests.protocol_model.rules import EVERY_RULE, Rule
from tests.protocol_model.scenarios import BY_NAME
from tests.protocol_model.verdict import examine, printed

NEEDED = {
    Rule.ROW_IS_LOCKED: ("2 coordinators, 1 Redis lost", Invariant.KEY_APPLIED_ONCE),
    Rule.COUNTERS_FROM_LOCKED_ROW: ("1 suspicion", Invariant.COUNTERS_MATCH_ROW),
    Rule.OPENED_UNPUBLISHED: ("1 cancel, 1 coordinator crash", Invariant.NO_CLAIM_OF_THE_DEAD),
    Rule.OPENING_CARRIES_ANSWER: (
        "provider batch, 1 Redis lost, 1 coordinator crash",
        Invariant.RECORDED_ANSWER_REUSED,
    ),
    Rule.APPEND_IN_ROWS_EPOCH: ("provider batch, 1 Redis lost, 1 coordinator crash", Invariant.ONE_OWNER),
    Rule.EPOCH_ON_EVERY_APPEND: ("1 Redis lost", Invariant.PAID_AGAIN_FOR_A_REASON),
    Rule.EPOCH_CHANGES_ON_RESTART: ("1 Redis restarted", Invariant.ONE_OWNER),
    Rule.OLDER_IS_FENCED: ("1 cancel, 1 coordinator crash", Invariant.NO_CLAIM_OF_THE_DEAD),
    Rule.OTHER_BODY_CONFLICTS: ("2 duplicate task", Invariant.ONE_OWNER),
    Rule.OPENING_PERSISTS: (
        "failed, expiry, 1 duplicate task, 1 operator retry",
        Invariant.LIVE_STREAM_LASTS,
    ),
    Rule.TAIL_ABOVE_NEWEST: ("1 Redis lost, 1 target error", Invariant.PAID_AGAIN_FOR_A_REASON),
    Rule.CLAIM_NEEDS_OPENING: ("completed, expiry, 2 duplicate task", Invariant.NO_CLAIM_OF_THE_DEAD),
    Rule.CLAIM_NEEDS_EPOCH: ("1 Redis restarted, 1 executor crash", Invariant.ONE_OWNER),
    Rule.NONCE_IN_CLAIM: ("one process, 1 duplicate task, 1 lost reply", Invariant.ONE_OWNER),
    Rule.OWN_DUPLICATE_OWNS: ("one process, 1 duplicate task, 1 lost reply", Invariant.ENDS),
    Rule.REPLY_BRINGS_STREAM: ("1 suspicion", Invariant.RECORDED_ANSWER_REUSED),
    Rule.ACK_WHEN_ALL_ON_RECORD: ("no fault", Invariant.ENDS),
    Rule.TAIL_OUTLIVES_ACK: ("1 Redis lost", Invariant.PAID_AGAIN_FOR_A_REASON),
    Rule.UNANSWERED_CLAIM_ASKED_AGAIN: ("1 Redis restarted, 1 lost reply", Invariant.ENDS),
    Rule.TAIL_PUT_BACK: ("1 Redis lost", Invariant.PAID_AGAIN_FOR_A_REASON),
    Rule.ROWS_ATTEMPT_ONLY: ("1 suspicion", Invariant.FENCED_CHANGES_NOTHING),
    Rule.CONTIGUOUS_LEGAL_PREFIX: ("1 executor crash, 1 reorder", Invariant.CONTIGUOUS_OR_BRIDGED),
    Rule.COMPARE_AND_SET: ("2 storage, 1 cancel, 1 target error", Invariant.FENCED_CHANGES_NOTHING),
    Rule.GAP_IS_BRIDGED: ("1 executor crash, 1 reorder", Invariant.ENDS),
    Rule.EXPIRE_UNLESS_NEWER: (
        "failed, expiry, 2 storage, 1 coordinator crash, 1 duplicate task, 1 operator retry",
        Invariant.LIVE_STREAM_LASTS,
    ),
    Rule.EXPIRY_OUTLASTS_STALLS: ("unpublished, expiry, 2 coordinators", Invariant.ONE_OWNER),
    Rule.RETRY_WHEN_DUE: ("1 Redis lost, 1 target error", Invariant.ENDS),
    Rule.DEAD_OWNER_REPLACED: ("1 executor crash", Invariant.ENDS),
    Rule.LOST_EPOCH_REPLACED: ("1 Redis lost", Invariant.ENDS),
    Rule.MISSING_OPENING_PUBLISHED: ("unpublished, 2 coordinator crash", Invariant.ENDS),
    Rule.DRAINED_QUEUE_REFILLED: ("unpublished, 2 coordinator crash", Invariant.ENDS),
    Rule.GRACE_AFTER_LOSS: ("1 Redis lost", Invariant.PAID_AGAIN_FOR_A_REASON),
    Rule.ENDED_OPENING_PUBLISHED: ("1 cancel, 1 coordinator crash", Invariant.CLEANS_UP),
}
"""Where the lack of each rule shows soonest, and which promise is broken there."""

IN_DEPTH = {
    Rule.ANSWER_READ_IN_TRANSACTION: "1 Redis lost",
    Rule.CLOSED_BEYOND_CLOSING: "one process, 1 duplicate task, 1 lost reply",
    Rule.ONLY_NEWEST_GOES_ON: "1 cancel, 1 coordinator crash",
    Rule.STOP_ON_REFUSAL: "1 cancel, 1 coordinator crash",
    Rule.DROP_UNCLAIMED_ON_EPOCH: "1 Redis lost",
    Rule.TAIL_WHOLE_OR_NOT: "1 Redis lost",
    Rule.UNIQUE_KEY: "2 storage, 2 reorder, 2 storage crash",
    Rule.CLOSING_LEFT_TO_STORAGE: "1 Redis lost",
    Rule.LOST_CLAIM_REPLACED: "1 Redis restarted",
}
"""Defence in depth: what these prevent, another rule prevents as well, and a scenario that shows it."""


def test_every_rule_is_either_needed_or_defence_in_depth():
    """A rule that is added must be shown to be of use, or owned up to."""
    assert NEEDED.keys() | IN_DEPTH.keys() == EVERY_RULE
    assert not NEEDED.keys() & IN_DEPTH.keys()


@pytest.mark.parametrize("rule", NEEDED, ids=lambda rule: rule.name)
def test_without_a_needed_rule_a_promise_is_broken(rule):
    """The search names the very promise that the rule is there to keep."""
    name, promise = NEEDED[rule]
    verdict = examine(BY_NAME[name], rules=EVERY_RULE - {rule}, limit=20_000, stop_when_broken=True)
    assert promise in verdict.stories


@pytest.mark.parametrize("rule", IN_DEPTH, ids=lambda rule: rule.name)
def test_without_defence_in_depth_the_other_rules_hold(rule):
    """Safe to lose, within the model; kept because worlds are larger than models."""
    verdict = examine(BY_NAME[IN_DEPTH[rule]], rules=EVERY_RULE - {rule}, limit=8_000)
    assert verdict.is_complete
    assert not verdict.stories, printed(verdict.stories)


def test_the_unique_key_and_the_compare_and_set_stand_behind_each_other():
    """Without both, two storage workers apply an event twice."""
    scenario = BY_NAME["2 storage, 2 reorder, 2 storage crash"]
    neither = EVERY_RULE - {Rule.COMPARE_AND_SET, Rule.UNIQUE_KEY}
    verdict = examine(scenario, rules=neither, limit=8_000, stop_when_broken=True)
    assert Invariant.KEY_APPLIED_ONCE in verdict.stories
