"""The first process of a sandbox: it starts the program, reaps orphans, and passes the exit status on.

Its exit status is reported by the kernel to bubblewrap, which runs outside, so a program can't forge it.
The kernel ends a PID namespace together with its first process, so no process of a run outlasts it.

Both hold only while the program can't control this process. On a user namespace both have the same user
id, so this process must not be dumpable: then the kernel refuses ptrace, `/proc/1/mem` and `pidfd_getfd`
to everyone without CAP_SYS_PTRACE. A shell has no command for PR_SET_DUMPABLE. The kernel does it at
`execve` of a file that the caller may execute and not read, hence a copy of the shell with mode 0111.

Before the program starts there is a handshake. The process announces itself with one byte on standard
output and blocks on standard input. The executor opens a pidfd, then writes one line, then the program's
input. Where the executor has died meanwhile, the read meets the end of the pipe and the program is never
started; afterwards PR_SET_PDEATHSIG, which bubblewrap has set by then, ends the sandbox with it.
"""

from functools import cache
from pathlib import Path

INIT = "/init/sh"
"""Its name matters: some shells are one of many programs in a file, and go by it."""
GO = b"\n"
"""The line that starts the program."""

_SCRIPT = 'printf .; read -r go || exit 1; {stdin}exec 3>&2 2>/dev/null; (exec "$@" 2>&3 3>&-); exit $?'
"""The shell's messages about signals are discarded: standard error is the program's."""


def init_command(*, has_input: bool) -> list[str]:
    """The first process's command line, to which that of the program is appended."""
    return [INIT, "-c", _SCRIPT.format(stdin="" if has_input else "exec </dev/null; "), "init"]


@cache
def init_binary() -> bytes:
    """The content of the first process's executable: the host's shell."""
    return Path("/bin/sh").resolve().read_bytes()
