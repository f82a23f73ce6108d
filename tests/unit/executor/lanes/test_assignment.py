"""The lanes that a batch uses, with their limits."""

from domain.batch_spec import BatchSpec, Limits, TargetSpec
from executor.lanes.assignment import BatchContext, limits_on
from executor.lanes.contract import LaneLimit


def test_the_most_specific_limit_of_each_kind_is_declared_with_its_origin():
    """A target's limit precedes its account's, and an account's precedes the batch's."""
    target = TargetSpec("openai", "gpt", is_metered=True, rate_limits=Limits(rpm=1))
    accounts = {"openai": Limits(rpm=2, tpm=20), "openai:acct": Limits(tpm=30), "anthropic": Limits(rpm=4)}
    limits = Limits(rpm=5, tpm=50, max_concurrency=5)
    place = BatchContext("b-1", BatchSpec("b", (target,), limits=limits, accounts=accounts))
    assert list(limits_on("openai:acct:gpt-4o", target, place)) == [
        LaneLimit("b-1 targets.gpt", rpm=1),
        LaneLimit("b-1 accounts.openai:acct", tpm=30),
        LaneLimit("b-1 limits", max_concurrency=5),
    ]
