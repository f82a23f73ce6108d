"""Which executor the demo may kill."""

import pytest

from eventlog import payloads as p
from scoreline.local.demo.executor_kill import TaskProgress, held
from taskqueue.tasks import Task
from tests.builders import EVALUATION, history, wire

DIED_AND_CAME_BACK = [
    *history("queued provisioning"),
    *history("queued:lost provisioning running responded completed", attempt=2),
]


@pytest.mark.parametrize(
    ("stream", "attempt", "found"),
    [
        (history("queued"), 1, TaskProgress.UNCLAIMED),
        (history("queued provisioning"), 1, TaskProgress.CLAIMED),
        (history("queued provisioning running responded"), 1, TaskProgress.CLAIMED),
        (history("queued provisioning running responded completed"), 1, TaskProgress.FINISHED),
        (history("queued provisioning running retrying"), 1, TaskProgress.FINISHED),
        (DIED_AND_CAME_BACK, 2, TaskProgress.FINISHED),
        (DIED_AND_CAME_BACK, 1, TaskProgress.CLAIMED),
    ],
)
def test_only_claimed_and_open_attempts_count(stream, attempt, found):
    """A task counts as claimed while the executor's attempt has not ended."""
    assert held(Task(EVALUATION, attempt), wire(stream), "executor-1") is found


def test_the_claim_of_another_executor_does_not_count():
    """An executor that lost the race for an attempt does not hold it."""
    other = history("queued provisioning", provisioning=p.Provisioning("executor-2", "nonce-2"))
    assert held(Task(EVALUATION, 1), wire(other), "executor-1") is TaskProgress.UNCLAIMED
