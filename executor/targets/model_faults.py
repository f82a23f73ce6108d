"""Conversion of SDK errors to faults.

Both SDKs raise errors of the same shape: with a `response` if there was one, with a `body` if it had one,
and with the connection's own error as their cause if there was neither.
"""

from datetime import datetime

import httpx2

from eventlog.redaction import redact_head
from executor.contract import CallFault, Overloaded, Permanent, RateLimited, Transient, Unreachable
from executor.targets.connections import no_connection
from providers.decompression import ReplyRefused
from providers.endpoint import ModelEndpoint
from providers.errors import QUOTE, ClassifiedError, ErrorClass, classify_error, parse_error
from providers.limits import RateLimits
from providers.rate_limit_headers import limits_of, retry_after, wait_for


def fault_of(error: Exception, access: ModelEndpoint, *, now: datetime, came: str = "") -> CallFault:
    """Classify an error; `came` is the text that a stream had delivered by then."""
    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
    if isinstance(cause, ReplyRefused):
        return Permanent(cause.kind, f"{access.provider.title} at {access.place}: {cause}{_lost(came)}")
    if isinstance(cause, httpx2.DecodingError):
        return garbled(access, f"{cause}{_lost(came)}")
    if isinstance(cause, httpx2.ReadTimeout | httpx2.WriteTimeout):
        return Transient("timeout", f"{access.provider.title} took too long{_lost(came)}")
    if isinstance(cause, httpx2.TransportError | OSError):
        return _disconnected(cause, access, came)
    response: httpx2.Response | None = getattr(error, "response", None)
    body: object = getattr(error, "body", None)
    if body is None and (response is None or response.status_code < 400):
        return garbled(access, f"{type(error).__name__}: {error}{_lost(came)}")
    status, headers = (response.status_code, response.headers) if response else (200, httpx2.Headers())
    limits = limits_of(access.provider.limit_headers, headers, now=now)
    wait = retry_after(headers, now=now) or wait_for(limits)
    return _fault(classify_error(parse_error(status, body), access, retry_after=wait), limits, _lost(came))


def broken_off(access: ModelEndpoint, came: str, why: str) -> Unreachable:
    """Return the fault of an incomplete stream."""
    return Unreachable(
        "broken_stream", f"the stream of {access.provider.title} broke off: {why}{_lost(came)}"
    )


def garbled(access: ModelEndpoint, why: str) -> Transient:
    """Return the fault of an invalid reply."""
    quoted = redact_head(why, QUOTE)
    return Transient("invalid_response", f"{access.provider.title} sent an invalid reply: {quoted}")


def _disconnected(cause: Exception, access: ModelEndpoint, came: str) -> Unreachable:
    if unconnected := no_connection(cause, access.place):
        return unconnected
    why = redact_head(f"{type(cause).__name__}: {cause}", QUOTE)
    if came:
        return broken_off(access, came, why)
    return Unreachable("connection", f"{access.provider.title} can't be reached at {access.place}: {why}")


def _fault(failure: ClassifiedError, limits: RateLimits | None, lost: str) -> CallFault:
    message = failure.message + lost
    match failure.of:
        case ErrorClass.RATE_LIMITED:
            return RateLimited(message, retry_after=failure.retry_after, limits=limits)
        case ErrorClass.OVERLOADED:
            return Overloaded(message, retry_after=failure.retry_after, limits=limits)
        case ErrorClass.UNREACHABLE:
            return Unreachable(failure.kind, message, limits=limits)
        case ErrorClass.TRANSIENT:
            return Transient(failure.kind, message, limits=limits)
        case ErrorClass.PERMANENT:
            return Permanent(failure.kind, message, limits=limits)


def _lost(came: str) -> str:
    if not came:
        return ""
    return f"; {len(came):,} characters had come, which are no answer, and what they cost is not counted"
