"""Admission by budget, before a task is taken: no slot ever sleeps on a budget.

A task is taken only with a reservation for all that it may pay for. Batches without a budget pass through
untouched.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from executor.admission import Admission, Admitted
from executor.batch_runtime import BatchRuntime, RuntimeCache
from executor.budget.client import NOT_RESERVED, BudgetClient, Reserve, Reserved
from executor.budget.purposes import judge_calls, target_call
from executor.budget.spending import Calibrations, PaidCall, Spending
from executor.contract import Permanent
from executor.lanes.permits import Permits
from taskqueue.budget.estimates import FREE, Estimate, largest, together
from taskqueue.lines import SCORING, split, target_of

ASK_AGAIN = 0.1
"""Seconds after which a batch without room is worth another request."""


class BudgetAdmission:
    """`Admission` that reserves budget, then asks another one."""

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
        self._reserved: dict[str, list[Reserved]] = defaultdict(list)

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Reserve for the tasks of batches with a budget; what has no room is not asked for further."""
        wanted = Counter(line for line in turns if self._has_budget(split(line)[0]))
        if not wanted:
            return await self._admission.admit(turns)
        reserved = await self._reserve(wanted)
        admitted = await self._admitted(_within(turns, wanted, reserved), reserved)
        for line, amounts in reserved.items():
            number = admitted.granted.get(line, 0)
            self._reserved[line] += amounts[:number]
            self._release(line, amounts[number:])
        short = {line: ASK_AGAIN for line, number in wanted.items() if len(reserved[line]) < number}
        return Admitted(admitted.granted, {**short, **admitted.shut}, {*admitted.metered, *wanted})

    def lend(self, line: str) -> Permits:
        """Hand over what was reserved for one task of a line."""
        permits, batch_id = self._admission.lend(line), split(line)[0]
        amounts = self._reserved.get(line)
        if not amounts and not self._has_budget(batch_id):
            return permits
        return replace(
            permits, spending=self._spending(batch_id, amounts.pop() if amounts else NOT_RESERVED)
        )

    def give_back(self, unused: Mapping[str, int]) -> None:
        """Return what was reserved and found no task."""
        for line, number in unused.items():
            amounts = self._reserved.get(line, [])
            back = [amounts.pop() for _ in range(min(number, len(amounts)))]
            self._release(line, back)
        self._admission.give_back(unused)

    async def _admitted(self, turns: Sequence[str], reserved: Mapping[str, list[Reserved]]) -> Admitted:
        try:
            return await self._admission.admit(turns)
        except BaseException:
            for line, amounts in reserved.items():
                self._release(line, amounts)
            raise

    def _release(self, line: str, amounts: Sequence[Reserved]) -> None:
        for each in amounts:
            self._client.release(split(line)[0], each)

    async def _reserve(self, wanted: Counter[str]) -> dict[str, list[Reserved]]:
        """Reserve line by line: the lines of one batch share an account, and each has its own estimate."""
        reserved: dict[str, list[Reserved]] = {}
        for line, number in wanted.items():
            expected = await self._expected(line)
            if expected == FREE:
                reserved[line] = [NOT_RESERVED] * number
                continue
            batch_id = split(line)[0]
            asked = Reserve(number, expected.unit, expected.least, likely=expected.likely)
            grant = (await self._client.reserve({batch_id: asked}))[batch_id]
            reserved[line] = [Reserved(grant.reserved, expected.likely)] * grant.granted
        return reserved

    async def _expected(self, line: str) -> Estimate:
        """Estimate one evaluation of a line: its target, and the evaluators that are paid."""
        batch_id, channel = split(line)
        runtime = await self._runtimes.of(batch_id)
        if isinstance(runtime, Permanent):
            return FREE
        spending = self._spending(batch_id, NOT_RESERVED)
        targets = largest(spending.expected(each) for each in _targets(runtime, channel))
        return together([targets, *(spending.expected(each) for each in judge_calls(runtime))])

    def _spending(self, batch_id: str, reserved: Reserved) -> Spending:
        return Spending(self._client, self._calibrations, batch_id=batch_id, reserved=reserved)


def _targets(runtime: BatchRuntime, channel: str) -> list[PaidCall]:
    """List the targets whose tasks wait in a line."""
    if channel == SCORING:
        return []
    number = target_of(channel)
    if number is not None:
        return [target_call(runtime, number)]
    targets = range(len(runtime.spec.targets))
    mixed = any(each.is_metered for each in runtime.spec.targets)
    return [target_call(runtime, n) for n in targets if not (mixed and runtime.spec.targets[n].is_metered)]


def _within(
    turns: Sequence[str], wanted: Mapping[str, int], reserved: Mapping[str, Sequence[Reserved]]
) -> list[str]:
    """Leave out the turns that got no reservation."""
    left = {line: len(amounts) for line, amounts in reserved.items()}
    kept: list[str] = []
    for line in turns:
        if line not in wanted:
            kept.append(line)
        elif left[line] > 0:
            left[line] -= 1
            kept.append(line)
    return kept
