"""Runs the program of a `code` evaluator inside the sandbox, and reports to the executor when it has ended.

    python3 [FLAGS] scoreline-driver.py PROGRAM DESCRIPTOR

It runs under the evaluator's interpreter, Python 3.8 or newer, and imports nothing that an interpreter has
not loaded at its start. The program finds what it would find as a script of its own: it is the module
`__main__`, and alone in `sys.argv`. Only after its last statement does the driver regain control: it sends
FINISHED, receives the sentinel, and sends that back. A program that raises, exits or becomes another one
never comes to that point.
"""

import sys
from os import getcwd, getpid, read, set_inheritable, write

FINISHED = b"finished\n"
SENTINEL_BYTES = 32


def main(program: str, channel: int) -> None:
    """Run a program, then report its end; a process that the program forked reports nothing."""
    set_inheritable(channel, False)  # noqa: FBT003 - the library's own
    started_as = getpid()
    sys.argv = [program]
    _run(program)
    if getpid() == started_as:
        write(channel, FINISHED)
        write(channel, read(channel, SENTINEL_BYTES))


def _run(program: str) -> None:
    """Execute the file as the module `__main__`; exits with 1 where it raises."""
    module, path = type(sys)("__main__"), f"{getcwd()}/{program}"  # noqa: PTH109 - no more imports
    module.__dict__.update(__builtins__=__builtins__, __file__=path)
    sys.modules["__main__"] = module
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - as above
            source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - its purpose
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the program raises, without the lines of this file
        sys.__excepthook__(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
