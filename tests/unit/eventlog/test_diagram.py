"""The state diagram in the docs shows all of the lifecycle's tables and nothing else."""

import re

from eventlog.diagram import state_diagram
from eventlog.lifecycle import FINAL, OPENINGS, SETTLED, TRANSITIONS, Phase

ARROW = re.compile(r"^    (?P<source>\S+) --> (?P<target>\S+?)(?:: (?P<label>.+))?$", re.MULTILINE)


def arrows() -> list[tuple[str, str, str]]:
    return [(m["source"], m["target"], m["label"] or "") for m in ARROW.finditer(state_diagram())]


def test_every_transition_is_drawn_once():
    """Each (state, event) pair of the table is one labelled arrow."""
    drawn = arrows()
    for phase, accepted in TRANSITIONS.items():
        for event_type, following in accepted.items():
            assert drawn.count((phase, following, event_type)) == 1


def test_every_arrow_is_in_the_tables():
    """Arrows that are not in the transition table are openings and ends."""
    table = {(phase, to, word) for phase, accepted in TRANSITIONS.items() for word, to in accepted.items()}
    others = {arrow for arrow in arrows() if arrow not in table}
    assert {target for source, target, _ in others if source != "[*]"} <= {"queued", "[*]"}
    assert {source for source, target, _ in others if target == "[*]"} == FINAL
    reopened = {source for source, target, _ in others if target == "queued" and source != "[*]"}
    assert reopened == SETTLED | {Phase.RETRYING}


def test_every_state_and_every_opening_is_named():
    """Every phase and every opening of the tables appears in the diagram."""
    diagram = state_diagram()
    assert diagram.startswith("stateDiagram-v2\n")
    for word in (*Phase, *OPENINGS):
        assert word in diagram or word == Phase.UNOPENED


def test_provisioning_does_not_lead_to_completed():
    """The diagram has no arrow for the transition that the lifecycle forbids."""
    assert not [arrow for arrow in arrows() if arrow[:2] == ("provisioning", "completed")]
