"""Contexts of serial groups: the outputs of earlier evaluations that a later one needs.

A context is derived from the log each time its evaluation is published, so it can't be lost. Executors
read it as one JSON object: `stored` (field → output) and `history` (the earlier turns of the conversation,
each a prompt and an answer).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue
from pydantic_core import to_json

from coordinator.attempts import last_opening, newest_answer
from domain.batch_spec import BatchSpec
from domain.template import UnknownField, case_fields, render
from eventlog import payloads as p
from eventlog.events import Event, EventKey
from eventlog.lifecycle import Phase
from projections.ledger.contract import Ledger, SerialLink

Logs = Mapping[str, Mapping[EventKey, Event]]


@dataclass(slots=True)
class GroupContext:
    """The context of an evaluation, or the reason why it can't be run."""

    stored: dict[str, JsonValue] = field(default_factory=dict)
    history: list[tuple[str, str]] = field(default_factory=list)
    missing: p.ErrorDetail | None = None

    def packed(self) -> bytes:
        """Encode the context as JSON."""
        return to_json({"stored": self.stored, "history": self.history})


async def contexts(
    ledger: Ledger, spec: BatchSpec, links: Mapping[str, SerialLink]
) -> dict[str, GroupContext]:
    """Derive the context of each of these evaluations."""
    recalled = sorted({earlier for link in links.values() for earlier, _ in link.recalls})
    evaluation_states = await ledger.evaluation_states(recalled)
    phases = {one.row.evaluation_id: one.row.cursor.phase for one in evaluation_states}
    logs = await ledger.stored([one.row for one in evaluation_states])
    return {key: _context(link.recalls, spec, phases, logs) for key, link in links.items()}


def _context(
    recalls: Sequence[tuple[str, str | None]], spec: BatchSpec, phases: Mapping[str, Phase], logs: Logs
) -> GroupContext:
    context = GroupContext()
    for earlier, name in recalls:
        answer, _ = newest_answer(logs.get(earlier, {}))
        if phases.get(earlier) is not Phase.COMPLETED or answer is None:
            context.missing = _missing(earlier, phases.get(earlier, Phase.UNOPENED), logs)
            return context
        if name is None:
            context.history.append((_asked(last_opening(logs[earlier]), spec, context), answer.output))
        else:
            context.stored[name] = answer.output
    return context


def _asked(opening: p.Queued, spec: BatchSpec, context: GroupContext) -> str:
    """Render an earlier turn's prompt as it was rendered then."""
    prompt = spec.variants[opening.variant].prompt
    try:
        return render(prompt, case_fields(opening.case, context.stored))
    except UnknownField:
        return prompt


def _missing(earlier: str, phase: Phase, logs: Logs) -> p.ErrorDetail:
    """Describe why a dependent evaluation can't be run: the state of the earlier one it needs."""
    logged = logs.get(earlier, {})
    case = last_opening(logged).case.id if logged else earlier
    why = ""
    for key in sorted(logged, reverse=True):
        match logged[key].data:
            case p.Failed(error=error) | p.TimedOut(error=p.ErrorDetail() as error):
                why = f": {error.kind}: {error.message}"
                break
            case _:
                continue
    return p.ErrorDetail(kind="dependency", message=f"needs the answer to {case}, which is {phase}{why}")
