"""How a scenario begins, and who moves in it."""

from eventlog.lifecycle import Phase
from tests.protocol_model.claiming import claims
from tests.protocol_model.coordinator import PROVIDER, deciding_coordinator
from tests.protocol_model.executor import executor, presence_of, releasing_executor, works
from tests.protocol_model.faults import FATE
from tests.protocol_model.moves import Actor, Setup
from tests.protocol_model.nature import fate, time
from tests.protocol_model.opening import acting_coordinator
from tests.protocol_model.rules import Rules
from tests.protocol_model.scenarios import Scenario
from tests.protocol_model.sending import writes
from tests.protocol_model.storage import storage_worker
from tests.protocol_model.world import Event, Executor, Ledger, Postgres, Stream, World

EARLIER = "E9.0"
"""An executor that is gone when the story begins."""


def first_world(scenario: Scenario, rules: Rules) -> World:
    """Set the scene."""
    presences = [presence_of(Setup("", rules, scenario, slot), Executor()) for slot in (0, 1)]
    postgres, stream = _records(scenario.beginning)
    queued = scenario.beginning in {"published", "failed", "completed"}
    return World(
        postgres=postgres,
        stream=stream,
        tasks=(1,) if queued else (),
        epoch=0,
        ledger=Ledger(paid=frozenset({1} if scenario.beginning == "completed" else ())),
        budget=scenario.budget,
        executor_0=Executor(),
        presence_0=presences[0],
        executor_1=Executor(),
        presence_1=presences[1],
        worker_0=None,
        worker_1=None,
        coordinator_0=None,
        coordinator_1=None,
    )


def cast(scenario: Scenario, rules: Rules) -> list[Actor]:
    """Name everyone who moves."""
    actors: list[Actor] = []
    if FATE.intersection(scenario.budget):
        actors.append(fate(Setup("FATE", rules, scenario)))
    if scenario.expiry:
        actors.append(time(Setup("TIME", rules, scenario)))
    for slot in (0, 1):
        setup = Setup(f"E{slot}", rules, scenario, slot)
        actors += [executor(setup, works, claims, writes), releasing_executor(setup)]
    for slot in range(max(1, scenario.storage_workers)):
        actors.append(storage_worker(Setup(f"S{slot}", rules, scenario, slot)))
    for slot in range(scenario.coordinators):
        coordinator = Setup(f"K{slot}", rules, scenario, slot)
        actors += [deciding_coordinator(coordinator), acting_coordinator(coordinator)]
    return actors


def _records(beginning: str) -> tuple[Postgres, Stream]:
    opening = Event(1, 0, "queued")
    match beginning:
        case "unpublished":
            return _row(opening)._replace(published=False), Stream()
        case "provider batch":
            waiting = _history(opening, PROVIDER, "provisioning running")
            return _row(opening), Stream(waiting)
        case "failed":
            failed = _history(opening, EARLIER, "provisioning failed")
            return _row(*failed), Stream(failed)
        case "completed":
            completed = _history(opening, EARLIER, "provisioning running responded completed")
            return _row(*completed), Stream(completed)
        case _:
            return _row(opening), Stream((opening,))


def _history(opening: Event, by: str, words: str) -> tuple[Event, ...]:
    following = (Event(1, sequence, word, by) for sequence, word in enumerate(words.split(), start=1))
    return (opening, *following)


def _row(*events: Event) -> Postgres:
    last = events[-1]
    return Postgres(1, last.sequence, Phase(last.type), True, 0, "", frozenset(events))
