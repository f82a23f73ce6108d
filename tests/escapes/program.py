"""What one program of the escape corpus is: an attack as data, with the mechanism that contains it.

A program prints `TRIED` once it has made its attempt, so that one that does not run proves nothing, and
`ESCAPED` if the attempt succeeded. Every program is bounded where a mechanism is missing: at most 1 GB
of memory, addresses of loopback only, files only in temporary folders.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.job import KilledBy, SandboxJob, SandboxLimits

ENDED: frozenset[KilledBy | None] = frozenset({None})
SIGNALLED: frozenset[KilledBy | None] = frozenset({None, "signal"})
TIME: frozenset[KilledBy | None] = frozenset({"time"})
MEMORY: frozenset[KilledBy | None] = frozenset({"memory"})
MEMORY_REFUSED: frozenset[KilledBy | None] = frozenset({None, "memory"})
FILES_REFUSED: frozenset[KilledBy | None] = frozenset({None, "disk"})
PROCESSES_REFUSED: frozenset[KilledBy | None] = frozenset({None, "processes"})
OUTPUT: frozenset[KilledBy | None] = frozenset({"output"})


class Family(StrEnum):
    """The class that an attack belongs to."""

    MEMORY = "memory"
    DISK = "disk and inodes"
    PROCESSES = "processes"
    TIME = "time"
    NETWORK = "network"
    FILES = "files"
    NAMESPACES = "namespaces"
    KEYRINGS = "keyrings"
    SIGNALS = "pid 1 and signals"
    TRACING = "ptrace and /proc"
    ABI = "system call ABI"
    ENVIRONMENT = "environment variables"
    DEVICES = "devices"
    REPORTS = "report socket and descriptors"
    KERNEL = "kernel interfaces"
    OUTPUT = "output floods"
    TERMINAL = "terminal escapes"
    EXIT_STATUS = "exit status forgery"


class Mechanism(StrEnum):
    """The mechanism that contains an attack."""

    SECCOMP = "seccomp filter"
    NETWORK = "network namespace"
    PIDS = "pid namespace"
    OWN_UID = "user id of its own"
    NOT_DUMPABLE = "pid 1 is not dumpable"
    MOUNTS = "mount namespace: the path is absent"
    READ_ONLY = "read-only mounts"
    TMPFS = "tmpfs size"
    FILES = "file limit, sampled"
    MEMORY = "memory limit, sampled"
    CGROUP = "memory limit, cgroup and samples"
    ADDRESS_SPACE = "RLIMIT_AS"
    FILE_SIZE = "RLIMIT_FSIZE"
    OPEN_FILES = "RLIMIT_NOFILE"
    LOCKED_MEMORY = "RLIMIT_MEMLOCK"
    PROCESSES = "RLIMIT_NPROC; process limit, sampled"
    PROCESSOR = "RLIMIT_CPU"
    TIME = "time limit, SIGKILL to the pid namespace"
    OUTPUT = "output cap"
    PRIVILEGES = "no capabilities, no_new_privs"
    ENVIRONMENT = "cleared environment"
    PRIVILEGED_TOOLS = "absolute paths; user variables set after the privilege drop"
    SESSION = "new session, no controlling terminal"
    DEVICES = "private /dev"
    REPORT_CAPS = "report socket caps and strict schema"
    DESCRIPTORS = "no inherited descriptors"
    STATUS = "exit status from bubblewrap over a private descriptor"
    PIPE_PAGES = "kernel limit of pipe pages per user"
    PRINTABLE = "captured output; control characters replaced on screens"


class ExecutorRights(StrEnum):
    """The user and capabilities of the executor, which decide the privilege mode of its sandboxes."""

    ROOT = "root with its own uid"
    UNPRIVILEGED = "unprivileged user namespace"
    CONTAINED_ROOT = "user namespace of root without CAP_SYS_ADMIN"
    CGROUP = "root with its own uid and a memory cgroup"

    @property
    def privilege_mode(self) -> PrivilegeMode:
        """The privilege mode that an executor with these rights chooses."""
        is_root = self in {ExecutorRights.ROOT, ExecutorRights.CGROUP}
        return PrivilegeMode.OWN_UID if is_root else PrivilegeMode.USER_NAMESPACE

    def covers(self, family: Family) -> bool:
        """Whether programs of a family are run: a cgroup changes nothing for those that take no memory."""
        return self is not ExecutorRights.CGROUP or family in {Family.MEMORY, Family.DISK, Family.PROCESSES}


@dataclass(frozen=True, kw_only=True)
class EscapeProgram:
    """One attack, how it may end, and what contains it."""

    name: str
    family: Family
    source: str
    mechanism: Mechanism
    mechanism_in_user_namespace: Mechanism | None = None
    """Where the privilege mode of a user namespace has another."""
    is_shared_memory: bool = False
    """Whether it uses memory that is refused, unless a cgroup counts it."""
    ends: frozenset[KilledBy | None] = ENDED
    exit_codes: frozenset[int] = frozenset({0})
    """Exit codes of a run that ended by itself; another one may be a mistake in the program."""
    seconds: float = 10
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    env: Mapping[str, str] = field(default_factory=dict)
    reports: bool = False
    """Whether the program has a report socket."""
    result: str | None = None
    """The output that the report socket must have brought; not checked if None."""
    succeeds_unconfined: bool = False
    """Harmless without any sandbox, and successful there: the proof that the attack is a real one."""

    def contained_by(self, rights: ExecutorRights) -> Mechanism:
        """Name the mechanism that contains it in a sandbox of an executor with these rights."""
        if rights is ExecutorRights.CGROUP and (
            self.is_shared_memory or self.mechanism is Mechanism.MEMORY
        ):
            return Mechanism.CGROUP
        if rights.privilege_mode is PrivilegeMode.USER_NAMESPACE and self.mechanism_in_user_namespace:
            return self.mechanism_in_user_namespace
        return self.mechanism

    def job(self, facts: Mapping[str, Any], *, reports: Path | None = None) -> SandboxJob:
        """Build the job; `facts` is what an insider would know of the host."""
        known = json.dumps({**facts, "calls": _calls()})
        text = f"FACTS = {known!r}\n{PRELUDE}\n{self.source}"
        return SandboxJob(
            ("python3", "-I", "-S", "-B", "program.py"),
            self.seconds,
            texts={"program.py": text.encode()},
            limits=self.limits,
            files={"shown": Path(facts["shown"])},
            env=self.env,
            reports=reports,
        )


PRELUDE = '''
import ctypes, errno, json, os, socket, struct, sys, time
host = json.loads(FACTS)
calls = host["calls"]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def tried():
    print("TRIED", flush=True)

def escaped(*what):
    print("ESCAPED", *what, flush=True)

def call(number, *arguments):
    """Make a raw system call; the negative error number where it fails."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    done = libc.syscall(ctypes.c_long(number), *passed)
    return done if done >= 0 else -ctypes.get_errno()

def refused(name, *arguments):
    """Make a raw system call that the sandbox must refuse with EPERM or ENOSYS, whatever its arguments."""
    done = call(calls[name], *arguments)
    if done not in (-errno.EPERM, -errno.ENOSYS):
        escaped(name, done)

def attempt(function, *arguments, **named):
    """Call a function; None where the system refuses."""
    try:
        return function(*arguments, **named)
    except OSError:
        return None

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
'''

_CALLS = {  # name: its number on x86-64, on arm64
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180), "vmsplice": (278, 75), "mlockall": (151, 230),
    "io_setup": (206, 0), "unshare": (272, 97), "setns": (308, 268), "clone": (56, 220),
    "clone3": (435, 435), "mount": (165, 40), "umount2": (166, 39), "chroot": (161, 51),
    "pivot_root": (155, 41), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "kcmp": (312, 272),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "acct": (163, 89), "syslog": (103, 116), "quotactl": (179, 60), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "socket": (41, 198), "seccomp": (317, 277),
    "setpriority": (141, 140), "sched_setscheduler": (144, 119), "ioprio_set": (251, 30),
    "rt_sigqueueinfo": (129, 138), "tgkill": (234, 131), "process_madvise": (440, 440),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "process_mrelease": (448, 448),
    "fanotify_init": (300, 262), "vhangup": (153, 58),
}  # fmt: skip


def _calls() -> dict[str, int]:
    column = 1 if platform.machine() == "aarch64" else 0
    return {name: numbers[column] for name, numbers in _CALLS.items()}
