"""Connections that were never made: refused, or to a host whose name does not resolve."""

import socket
from collections.abc import Iterator

from executor.contract import NoConnection


def no_connection(error: BaseException, place: str) -> NoConnection | None:
    """Classify an error at connecting; None where something may have received the call."""
    for cause in _causes(error):
        match cause:
            case ConnectionRefusedError():
                return NoConnection(f"{place}: connection refused")
            case socket.gaierror():
                return NoConnection(f"{place}: the host name does not resolve ({cause.strerror})")
            case _:
                continue
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and all of its causes."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                yield from _causes(each)
        error = error.__cause__ or error.__context__
