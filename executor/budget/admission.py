"""Admission by budget, before a task is fetched: no slot ever waits for a budget.

A task is fetched only with a reservation for all calls that it may pay for. Batches without a budget are
passed on unchanged.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from executor.admission import Admission, Admitted
from executor.batch_runtime import BatchRuntime, RuntimeCache
from executor.budget.billable_calls import judge_calls, target_call
from executor.budget.client import NOT_RESERVED, BudgetClient, Reservation, ReservationRequest
from executor.budget.task_budget import BillableCall, Calibrations, TaskBudget
from executor.contract import Permanent
from executor.lanes.permits import Permits
from taskqueue.budget.estimates import FREE, Estimate, largest, together
from taskqueue.queue_layout import SCORING_PARTITION, split_queue, target_number

ASK_AGAIN = 0.1
"""Seconds after which another request for an exhausted batch is sent."""


class BudgetAdmission:
    """`Admission` that reserves budget, then delegates to another one."""

    def __init__(
        self,
        admission: Admission,
        client: BudgetClient,
        runtimes: RuntimeCache,
        has_budget: Callable[[str], bool],
    ) -> None:
        self._admission = admission
        self._client = client
        self._runtimes = runtimes
        self._has_budget = has_budget
        self._calibrations = Calibrations()
        self._reserved: dict[str, list[Reservation]] = defaultdict(list)

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Reserve for the tasks of batches with a budget; the others are not requested."""
        wanted = Counter(queue for queue in turns if self._has_budget(split_queue(queue)[0]))
        if not wanted:
            return await self._admission.admit(turns)
        reserved = await self._reserve(wanted)
        admitted = await self._admitted(_within(turns, wanted, reserved), reserved)
        for queue, amounts in reserved.items():
            number = admitted.granted.get(queue, 0)
            self._reserved[queue] += amounts[:number]
            self._release(queue, amounts[number:])
        short = {queue: ASK_AGAIN for queue, number in wanted.items() if len(reserved[queue]) < number}
        return Admitted(admitted.granted, {**short, **admitted.retry_in}, {*admitted.metered, *wanted})

    def take_permits(self, queue: str) -> Permits:
        """Return the reservation and permits of one task of a queue."""
        permits, batch_id = self._admission.take_permits(queue), split_queue(queue)[0]
        amounts = self._reserved.get(queue)
        if not amounts and not self._has_budget(batch_id):
            return permits
        return replace(permits, budget=self._spending(batch_id, amounts.pop() if amounts else NOT_RESERVED))

    def return_unused(self, unused: Mapping[str, int]) -> None:
        """Release reservations for which the queue had no task."""
        for queue, number in unused.items():
            amounts = self._reserved.get(queue, [])
            back = [amounts.pop() for _ in range(min(number, len(amounts)))]
            self._release(queue, back)
        self._admission.return_unused(unused)

    async def _admitted(self, turns: Sequence[str], reserved: Mapping[str, list[Reservation]]) -> Admitted:
        try:
            return await self._admission.admit(turns)
        except BaseException:
            for queue, amounts in reserved.items():
                self._release(queue, amounts)
            raise

    def _release(self, queue: str, amounts: Sequence[Reservation]) -> None:
        for each in amounts:
            self._client.release(split_queue(queue)[0], each)

    async def _reserve(self, wanted: Counter[str]) -> dict[str, list[Reservation]]:
        """Reserve queue by queue: all queues of a batch share an account; each has its own estimate."""
        reserved: dict[str, list[Reservation]] = {}
        for queue, number in wanted.items():
            expected = await self._expected(queue)
            if expected == FREE:
                reserved[queue] = [NOT_RESERVED] * number
                continue
            batch_id = split_queue(queue)[0]
            asked = ReservationRequest(number, expected.unit, expected.least, likely=expected.likely)
            grant = (await self._client.reserve({batch_id: asked}))[batch_id]
            reserved[queue] = [Reservation(grant.reserved, expected.likely)] * grant.granted
        return reserved

    async def _expected(self, queue: str) -> Estimate:
        """Estimate one evaluation of a queue: its target, and the evaluators that are paid."""
        batch_id, partition = split_queue(queue)
        runtime = await self._runtimes.of(batch_id)
        if isinstance(runtime, Permanent):
            return FREE
        spending = self._spending(batch_id, NOT_RESERVED)
        targets = largest(spending.expected(each) for each in _targets(runtime, partition))
        return together([targets, *(spending.expected(each) for each in judge_calls(runtime))])

    def _spending(self, batch_id: str, reserved: Reservation) -> TaskBudget:
        return TaskBudget(self._client, self._calibrations, batch_id=batch_id, reserved=reserved)


def _targets(runtime: BatchRuntime, partition: str) -> list[BillableCall]:
    """List the targets whose tasks wait in a queue."""
    if partition == SCORING_PARTITION:
        return []
    number = target_number(partition)
    if number is not None:
        return [target_call(runtime, number)]
    targets = range(len(runtime.spec.targets))
    mixed = any(each.is_metered for each in runtime.spec.targets)
    return [target_call(runtime, n) for n in targets if not (mixed and runtime.spec.targets[n].is_metered)]


def _within(
    turns: Sequence[str], wanted: Mapping[str, int], reserved: Mapping[str, Sequence[Reservation]]
) -> list[str]:
    """Leave out the turns that got no reservation."""
    left = {queue: len(amounts) for queue, amounts in reserved.items()}
    kept: list[str] = []
    for queue in turns:
        if queue not in wanted:
            kept.append(queue)
        elif left[queue] > 0:
            left[queue] -= 1
            kept.append(queue)
    return kept
