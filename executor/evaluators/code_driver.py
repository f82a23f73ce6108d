"""Runs the program of a `code` evaluator inside the sandbox, and reports to the executor when it has ended.

    python3 [FLAGS] scoreline-driver.py PROGRAM DESCRIPTOR

It runs under the evaluator's interpreter, Python 3.8 or newer, and imports nothing that an interpreter has
not loaded at its start. The program finds what it would find as a script of its own: it is the module
`__main__`, and alone in `sys.argv`. Only after its last statement does the driver regain control: it sends
its ticket, receives the sentinel, and sends that back. A program that raises, exits or becomes another one
never comes to that point.

The ticket shows that a request is the driver's. It is read from the channel before the program starts, and
while that runs no variable, frame or container refers to it: it waits as an argument on the stack of the
interpreter. A driver that a program starts again has no ticket.
"""

import sys
from os import getcwd, getpid, read, set_inheritable, write

TICKET_BYTES = 32
SENTINEL_BYTES = 32
CHANNEL_CLOSED = "the program closed a descriptor that it did not open: the driver's, which reports its end"


def main(program: str, channel: int) -> None:
    """Run a program, then report its end; exits with 1 where it raises."""
    set_inheritable(channel, False)  # noqa: FBT003 - the library's own
    pid = getpid()
    sys.argv = [program]
    module, path = type(sys)("__main__"), f"{getcwd()}/{program}"  # noqa: PTH109 - no more imports
    module.__dict__.update(__builtins__=__builtins__, __file__=path)
    sys.modules["__main__"] = module
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - as above
            code = compile(file.read(), path, "exec", dont_inherit=True)
        _report(channel, pid, read(channel, TICKET_BYTES), exec(code, module.__dict__))  # type: ignore[func-returns-value]  # noqa: S102 - its purpose
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the program raises, without the lines of this file
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        BaseException.with_traceback(error, trace)  # the hook prefers the error's traceback to its argument
        sys.__excepthook__(type(error), error, trace)
        sys.exit(1)


def _report(channel: int, pid: int, ticket: bytes, _: None) -> None:
    """Request the sentinel and return it; a process that the program forked reports nothing."""
    if getpid() == pid:
        try:
            write(channel, ticket)
            write(channel, read(channel, SENTINEL_BYTES))
        except OSError:
            sys.exit(CHANNEL_CLOSED)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
