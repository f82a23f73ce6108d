"""Payloads of events without secrets."""

from eventlog import payloads as p
from eventlog.redaction import MARK
from tests.redaction.trial import knowing
from tests.unit.eventlog.secrets_of_tests import SECRET


def test_a_case_is_not_redacted():
    """The user's input is evaluated unchanged; only answers are redacted."""
    from eventlog.redacted_payloads import redact_payload  # noqa: PLC0415 - beside what it is about

    with knowing(SECRET):
        queued = p.Queued(p.Case("c", input=SECRET), answer=p.Answer(SECRET))
        redacted = redact_payload(queued)
    assert redacted.case.input == SECRET
    assert redacted.answer == p.Answer(MARK)
