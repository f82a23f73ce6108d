"""Errors at connecting: was the call certainly not received?"""

import socket

import pytest

from executor.targets.connections import no_connection


def caused_by(cause: BaseException, *, explicitly: bool = True) -> Exception:
    """An error of a client library, raised because of another or while that one was handled."""
    error = OSError("connection failed")
    if explicitly:
        error.__cause__ = cause
    else:
        error.__context__ = cause
    return error


REFUSED = ConnectionRefusedError(111, "refused")


@pytest.mark.parametrize(
    "error",
    [
        REFUSED,
        caused_by(REFUSED),
        caused_by(caused_by(REFUSED), explicitly=False),
        ExceptionGroup("all addresses failed", [TimeoutError(), caused_by(REFUSED)]),
    ],
)
def test_a_refused_connection_is_found_among_all_causes(error):
    """However deep the libraries have wrapped it; the fault names the place."""
    fault = no_connection(error, "api.test:443")
    assert fault
    assert (fault.kind, fault.message) == ("connection", "api.test:443: connection refused")


def test_a_name_that_does_not_resolve_is_reported_with_the_resolver_s_reason():
    """A wrong name and a resolver that failed have different reasons."""
    fault = no_connection(caused_by(socket.gaierror(-2, "Name or service not known")), "api.tset")
    assert fault
    assert fault.message == "api.tset: the host name does not resolve (Name or service not known)"


@pytest.mark.parametrize("error", [ConnectionResetError(), caused_by(TimeoutError()), ValueError()])
def test_any_other_error_may_have_followed_a_call_that_was_received(error):
    """A connection that was made and broke is not one that was never made."""
    assert no_connection(error, "api.test") is None
