"""Ways out of a sandbox that untrusted code has been known to try: a program that gets out says ESCAPED."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executor.sandbox.job import Job, KilledBy, Limits
from tests.integration.sandboxed import python

ANY: frozenset[KilledBy | None] = frozenset({None, "time", "output", "memory", "processes", "signal"})
FREE: frozenset[KilledBy | None] = frozenset({None})


@dataclass(frozen=True)
class Attack:
    """A program, and how it may end."""

    name: str
    program: str
    ends: frozenset[KilledBy | None] = FREE
    seconds: float = 10
    limits: Limits = field(default_factory=Limits)

    def job(self, host: dict[str, Any]) -> Job:
        """The attack as a job, told of the host what an insider would know."""
        shown = {"shown": Path(host["shown"])}
        return python(self.program, seconds=self.seconds, limits=self.limits, files=shown, facts=host)


REACHING_OUT = [
    Attack(
        "connect to a port of the host",
        """
import socket
socket.create_connection(("127.0.0.1", host["tcp"]), timeout=2).send(b"x")
print("ESCAPED")
""",
    ),
    Attack(
        "send a datagram to the host",
        """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", host["udp"]))
s.send(b"x"); time.sleep(0.1); s.send(b"nobody has refused the first")
print("ESCAPED")
""",
    ),
    Attack(
        "connect to a socket in the host's file system",
        """
import socket
socket.socket(socket.AF_UNIX).connect(host["socket"])
print("ESCAPED")
""",
    ),
    Attack(
        "connect to an abstract socket of the host",
        r"""
import socket
socket.socket(socket.AF_UNIX).connect("\0" + host["abstract"])
print("ESCAPED")
""",
    ),
    Attack(
        "read the environment of other processes",
        """
import glob
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if host["canary"].encode() in open(path, "rb").read():
            print("ESCAPED")
    except OSError:
        pass
""",
    ),
    Attack(
        "read the command lines of other processes",
        """
import glob
for path in glob.glob("/proc/[0-9]*/cmdline"):
    if host["token"].encode() in open(path, "rb").read():
        print("ESCAPED")
""",
    ),
    Attack(
        "read files of the host",
        """
import os
for path in host["secrets"]:
    if os.path.exists(path) and (os.listdir(path) if os.path.isdir(path) else open(path, "rb").read()):
        print("ESCAPED", path)
""",
    ),
    Attack(
        "follow a symbolic link out of a directory that it was shown",
        """
import os
print("ESCAPED") if os.path.exists("shown/link") or os.path.exists("shown/way/secret.txt") else None
""",
    ),
    Attack(
        "leave by the root of another process",
        """
import glob, os
for root in glob.glob("/proc/[0-9]*/root"):
    try:
        if os.path.exists(root + host["secret"]):
            print("ESCAPED", root)
    except OSError:
        pass
""",
    ),
]

DOING_HARM = [
    Attack(
        "write to what it was shown",
        """
for attempt in (lambda: open("shown/file.txt", "w"), lambda: open("shown/new.txt", "w")):
    try:
        attempt().write("x")
        print("ESCAPED")
    except OSError:
        pass
""",
    ),
    Attack(
        "write where programs and devices are",
        """
for path in ("/x", "/usr/x", "/etc/x", "/dev/x", "/bin/x", "/run/x", "/proc/sys/kernel/hostname"):
    try:
        open(path, "w").write("x")
        print("ESCAPED", path)
    except OSError:
        pass
""",
    ),
    Attack(
        "kill and trace processes of the host",
        """
import ctypes, os, signal
libc = ctypes.CDLL(None)
for pid in (host["pid"], os.getppid(), 1):
    if libc.ptrace(16, pid, 0, 0) == 0:
        print("ESCAPED", pid)
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
os.kill(-1, signal.SIGKILL)
""",
        frozenset({None, "signal"}),
    ),
    Attack(
        "make a namespace where it is root",
        """
import ctypes, os
libc = ctypes.CDLL(None)
for flags in (0x10000000, 0x20000, 0x40000000):
    if libc.unshare(flags) == 0:
        print("ESCAPED", flags)
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
    print("ESCAPED")
try:
    os.setuid(0)
    print("ESCAPED")
except OSError:
    pass
""",
    ),
]

TAKING_TOO_MUCH = [
    Attack(
        "fork bomb",
        """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
        frozenset({"time", "memory", "processes"}),
        seconds=1,
        limits=Limits(processes=30),
    ),
    Attack(
        "more processes than it may",
        """
import os, time
for born in range(1000):
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError:
        break
print(born) if born < 30 else print("ESCAPED", born)
""",
        frozenset({None, "processes"}),
        limits=Limits(processes=30),
    ),
    Attack(
        "memory hog",
        """
hoard = []
try:
    while True:
        hoard.append(bytearray(8 << 20))
except MemoryError:
    print("ESCAPED") if len(hoard) > 16 else None
""",
        frozenset({None, "memory"}),
        limits=Limits(memory_mb=64, address_space_mb=128),
    ),
    Attack(
        "memory hog of many processes",
        """
import os, time
for _ in range(4):
    os.fork()
hoard = bytearray(b"x") * (16 << 20)
time.sleep(60)
""",
        frozenset({"memory"}),
        limits=Limits(memory_mb=96),
    ),
    Attack(
        "memory that belongs to no process",
        """
import ctypes, os
libc = ctypes.CDLL(None)
print("ESCAPED") if libc.shmget(0, 1 << 20, 0o1600) >= 0 or libc.memfd_create(b"x", 0) >= 0 else None
""",
    ),
    Attack(
        "disk hog",
        """
written = 0
for place in ("/tmp", "/dev/shm"):
    try:
        for number in range(100):
            with open(f"{place}/{number}", "wb") as file:
                written += file.write(bytes(1 << 20))
    except OSError:
        pass
print("ESCAPED", written) if written > 20 << 20 else None
""",
        limits=Limits(disk_mb=8),
    ),
    Attack(
        "one huge file",
        """
import os
with open("huge", "wb") as file:
    file.truncate(1 << 40)
print("ESCAPED")
""",
        frozenset({None, "signal"}),
    ),
    Attack(
        "output flood",
        """
import sys
for _ in range(1024):
    sys.stdout.write("x" * (1 << 20))
print("ESCAPED")
""",
        frozenset({"output"}),
    ),
    Attack(
        "flood of both streams from many processes",
        """
import os
os.fork(); os.fork()
while True:
    os.write(1, b"x" * 65536); os.write(2, b"y" * 65536)
""",
        frozenset({"output"}),
    ),
    Attack("burn the processor", "while True: pass", frozenset({"time"}), limits=Limits(cpu_seconds=1)),
    Attack("sleep for ever", "import time; time.sleep(10**6)", frozenset({"time"}), seconds=0.3),
    Attack(
        "ignore every signal",
        """
import signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
time.sleep(60)
""",
        frozenset({"time"}),
        seconds=0.5,
    ),
    Attack(
        "deep recursion",
        """
import sys
sys.setrecursionlimit(10**9)
def deeper(function): return sorted([1], key=lambda _: function(function))
deeper(deeper)
""",
        ANY,
    ),
    Attack(
        "pack endless zeros",
        """
import gzip
with open("/dev/zero", "rb") as zeros, gzip.open("packed.gz", "wb") as packed:
    while True:
        packed.write(zeros.read(1 << 20))
""",
        frozenset({"time"}),
        seconds=0.5,
    ),
    Attack(
        "leave something for the next",
        """
for place in ("/tmp", "/dev/shm"):
    open(place + "/left-behind", "w").write("x")
""",
    ),
    Attack(
        "leave a daemon behind",
        """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", [host["token"], "1000"])
    os._exit(0)
time.sleep(0.2)
""",
    ),
]

ATTACKS = [*REACHING_OUT, *DOING_HARM, *TAKING_TOO_MUCH]
