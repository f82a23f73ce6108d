"""Programs that take more memory, disk, processes, time or output than their limits allow."""

from executor.sandbox.job import SandboxLimits
from tests.escapes.program import (
    FILES_REFUSED,
    MEMORY,
    MEMORY_REFUSED,
    OUTPUT,
    PROCESSES_REFUSED,
    SIGNALLED,
    TIME,
    EscapeProgram,
    Family,
    Mechanism,
)

SMALL = SandboxLimits(memory_mb=64)

MEMORY_PROGRAMS = (
    EscapeProgram(
        name="hoard private memory",
        family=Family.MEMORY,
        mechanism=Mechanism.ADDRESS_SPACE,
        ends=MEMORY_REFUSED,
        limits=SandboxLimits(memory_mb=64, address_space_mb=128),
        source="""
tried()
hoard = []
try:
    while len(hoard) < 64:
        hoard.append(bytearray(8 << 20))
except MemoryError:
    pass
if len(hoard) > 16:
    escaped(len(hoard) * 8, "MB")
""",
    ),
    EscapeProgram(
        name="hoard memory in many processes",
        family=Family.MEMORY,
        mechanism=Mechanism.MEMORY,
        ends=MEMORY,
        limits=SandboxLimits(memory_mb=96),
        source="""
tried()
for _ in range(4):
    os.fork()
hoard = bytearray(b"x") * (16 << 20)
time.sleep(8)
escaped()
""",
    ),
    EscapeProgram(
        name="forge the figures of its memory by a process name",
        family=Family.MEMORY,
        mechanism=Mechanism.MEMORY,
        ends=MEMORY,
        limits=SMALL,
        source=r"""
tried()
for name in (b"x\nRssAnon:\t0", b"x) R 0 0 0 0 0"):
    libc.prctl(15, name, 0, 0, 0)
hoard = bytearray(b"x") * (300 << 20)
time.sleep(2)
escaped("holds 300 MB")
""",
    ),
    EscapeProgram(
        name="hoard shared anonymous memory",
        family=Family.MEMORY,
        mechanism=Mechanism.SECCOMP,
        ends=MEMORY_REFUSED,
        limits=SMALL,
        is_shared_memory=True,
        source="""
import mmap
shared = attempt(mmap.mmap, -1, 600 << 20)
tried()
if shared:
    for at in range(0, 600 << 20, 4096):
        shared[at] = 1
    time.sleep(2)
    escaped("holds 600 MB")
""",
    ),
    EscapeProgram(
        name="hoard shared memory in many processes",
        family=Family.MEMORY,
        mechanism=Mechanism.SECCOMP,
        ends=MEMORY_REFUSED,
        limits=SMALL,
        is_shared_memory=True,
        source="""
import mmap
tried()
for _ in range(5):
    if os.fork() == 0:
        break
for validated in (0, 2):
    shared = attempt(mmap.mmap, -1, 60 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | validated)
    if shared:
        for at in range(0, 60 << 20, 4096):
            shared[at] = 1
        time.sleep(2)
        escaped("60 MB in each of six processes")
""",
    ),
    EscapeProgram(
        name="hoard shared mappings of devices",
        family=Family.MEMORY,
        mechanism=Mechanism.DEVICES,
        ends=MEMORY_REFUSED,
        limits=SMALL,
        source="""
import mmap
for name in ("zero", "full", "null", "random"):
    descriptor = attempt(os.open, f"/dev/{name}", os.O_RDWR)
    shared = None
    if descriptor is not None:
        shared = attempt(mmap.mmap, descriptor, 400 << 20, flags=mmap.MAP_SHARED)
    if shared:
        tried()
        for at in range(0, 400 << 20, 4096):
            shared[at] = 1
        time.sleep(1)
        escaped(name)
tried()
""",
    ),
    EscapeProgram(
        name="allocate files in /dev/shm that no process maps",
        family=Family.MEMORY,
        mechanism=Mechanism.TMPFS,
        limits=SandboxLimits(memory_mb=64, disk_mb=8),
        source="""
held = 0
for number in range(40):
    with open(f"/dev/shm/{number}", "wb+") as file:
        attempt(os.posix_fallocate, file.fileno(), 0, 4 << 20)
        if os.fstat(file.fileno()).st_size < 4 << 20:
            break
        held += 4
tried()
if held > 20:
    escaped(held, "MB")
""",
    ),
    EscapeProgram(
        name="System V segments, queues and semaphores",
        family=Family.MEMORY,
        mechanism=Mechanism.SECCOMP,
        source="""
refused("shmget", 0, 1 << 20, 0o1600)
refused("msgget", 0, 0o1600)
refused("semget", 0, 1, 0o1600)
refused("mq_open", b"queue", os.O_CREAT | os.O_RDWR, 0o600, None)
tried()
""",
    ),
    EscapeProgram(
        name="memory files that no process maps",
        family=Family.MEMORY,
        mechanism=Mechanism.SECCOMP,
        source="""
refused("memfd_create", b"x", 0)
refused("memfd_secret", 0)
tried()
""",
    ),
    EscapeProgram(
        name="pin huge pages in pipes and unmap them",
        family=Family.MEMORY,
        mechanism=Mechanism.SECCOMP,
        limits=SMALL,
        source="""
import mmap
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
pinned, pipes, huge = 0, [], 2 << 20
for _ in range(16):
    pipes.append(os.pipe())
    for _ in range(16):
        memory = mmap.mmap(-1, 2 * huge, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(14)
        keeper = ctypes.c_char.from_buffer(memory)
        base = (ctypes.addressof(keeper) + huge - 1) & ~(huge - 1)
        ctypes.memset(base, 1, huge)
        done = call(calls["vmsplice"], pipes[-1][1], ctypes.byref(Vector(base, 1)), 1, 0)
        del keeper
        memory.close()
        pinned += done == 1
tried()
if pinned * 2 > 128:
    escaped(pinned * 2, "MB pinned")
""",
    ),
    EscapeProgram(
        name="fill the buffers of pipes",
        family=Family.MEMORY,
        mechanism=Mechanism.PIPE_PAGES,
        limits=SMALL,
        source="""
import fcntl
held, ends = 0, []
for _ in range(100):
    reading, writing = os.pipe()
    ends += [reading, writing]
    attempt(fcntl.fcntl, writing, 1031, 4 << 20)
    os.set_blocking(writing, False)
    while wrote := attempt(os.write, writing, bytes(65536)):
        held += wrote
tried()
if held > 128 << 20:
    escaped(held >> 20, "MB")
""",
    ),
    EscapeProgram(
        name="enlarge and fill the buffers of Unix sockets",
        family=Family.MEMORY,
        mechanism=Mechanism.SECCOMP,
        limits=SandboxLimits(memory_mb=64, open_files=32),
        source="""
def fill():
    held, pairs = 0, []
    while pair := attempt(socket.socketpair):
        pairs.append(pair)
        for end in pair:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
            while sent := attempt(end.send, bytes(65536)):
                held += sent
    return held, pairs
held, pairs = fill()
tried()
if held > 16 << 20:
    escaped(held >> 20, "MB in 32 descriptors")
""",
    ),
    EscapeProgram(
        name="fill the queues of TCP connections",
        family=Family.MEMORY,
        mechanism=Mechanism.MEMORY,
        ends=MEMORY,
        limits=SMALL,
        source="""
tried()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(100)
held, kept = 0, []
while held < 400 << 20:
    near = attempt(socket.create_connection, listener.getsockname())
    far = attempt(listener.accept)
    if not near or not far:
        break
    kept += [near, far]
    for end in (near, far[0]):
        end.setblocking(False)
        while sent := attempt(end.send, bytes(65536)):
            held += sent
time.sleep(2)
escaped(held >> 20, "MB")
""",
    ),
    EscapeProgram(
        name="fill the buffers of Unix sockets in many processes",
        family=Family.MEMORY,
        mechanism=Mechanism.MEMORY,
        ends=MEMORY,
        limits=SMALL,
        source="""
tried()
for _ in range(8):
    if os.fork() == 0:
        break
held, pairs = 0, []
while pair := attempt(socket.socketpair):
    pairs.append(pair)
    for end in pair:
        end.setblocking(False)
        while sent := attempt(end.send, bytes(65536)):
            held += sent
time.sleep(3)
escaped(held >> 20, "MB in each of nine processes")
""",
    ),
    EscapeProgram(
        name="hide deleted files in descriptors in flight",
        family=Family.MEMORY,
        mechanism=Mechanism.TMPFS,
        limits=SandboxLimits(disk_mb=8),
        source="""
import array
left, right = socket.socketpair()
left.setblocking(False)
held = 0
for _ in range(40):
    descriptor = os.open("/tmp/deleted", os.O_CREAT | os.O_RDWR)
    os.unlink("/tmp/deleted")
    wrote = attempt(os.write, descriptor, bytes(1 << 20)) or 0
    carried = array.array("i", [descriptor])
    sent = attempt(left.sendmsg, [b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, carried)])
    os.close(descriptor)
    held += wrote if sent else 0
tried()
if held > 16 << 20:
    escaped(held >> 20, "MB")
""",
    ),
    EscapeProgram(
        name="lock memory",
        family=Family.MEMORY,
        mechanism=Mechanism.LOCKED_MEMORY,
        source="""
import mmap
memory = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held = ctypes.c_char.from_buffer(memory)
if libc.mlock(ctypes.c_void_p(ctypes.addressof(held)), ctypes.c_size_t(1 << 20)) == 0:
    escaped("mlock")
if call(calls["mlockall"], 3) == 0:
    escaped("mlockall")
tried()
""",
    ),
    EscapeProgram(
        name="reserve more address space than allowed",
        family=Family.MEMORY,
        mechanism=Mechanism.ADDRESS_SPACE,
        source="""
import mmap
try:
    mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    escaped("4 GB")
except (OSError, ValueError):
    pass
tried()
""",
    ),
    EscapeProgram(
        name="raise its own limits",
        family=Family.MEMORY,
        mechanism=Mechanism.PRIVILEGES,
        source="""
import resource
for limit in ("AS", "NPROC", "NOFILE", "FSIZE", "CPU", "MEMLOCK", "CORE", "MSGQUEUE"):
    number = getattr(resource, f"RLIMIT_{limit}", 12)
    _, hard = resource.getrlimit(number)
    if hard < 0:
        escaped(limit, "has no limit")
    for pid in (0, os.getpid()):
        try:
            resource.prlimit(pid, number, (hard + 1, hard + 1))
            escaped(limit)
        except (OSError, ValueError):
            pass
tried()
""",
    ),
)

DISK_PROGRAMS = (
    EscapeProgram(
        name="fill the working directory and /dev/shm",
        family=Family.DISK,
        mechanism=Mechanism.TMPFS,
        limits=SandboxLimits(disk_mb=8),
        source="""
written = 0
for place in ("/tmp", "/dev/shm"):
    for number in range(40):
        with open(f"{place}/{number}", "wb", buffering=0) as file:
            written += attempt(file.write, bytes(1 << 20)) or 0
tried()
if written > 20 << 20:
    escaped(written >> 20, "MB")
""",
    ),
    EscapeProgram(
        name="one huge file",
        family=Family.DISK,
        mechanism=Mechanism.FILE_SIZE,
        ends=SIGNALLED,
        source="""
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
tried()
with open("huge", "wb") as file:
    if attempt(os.ftruncate, file.fileno(), 1 << 40) is None and os.fstat(file.fileno()).st_size:
        escaped()
""",
    ),
    EscapeProgram(
        name="empty files without number",
        family=Family.DISK,
        mechanism=Mechanism.FILES,
        ends=FILES_REFUSED,
        limits=SandboxLimits(disk_mb=8, memory_mb=64),
        source="""
made = 0
tried()
for place in ("/tmp", "/dev/shm"):
    for number in range(60000):
        descriptor = attempt(os.open, f"{place}/{number}", os.O_CREAT | os.O_WRONLY)
        if descriptor is None:
            break
        os.close(descriptor)
        made += 1
if made > 70000:
    escaped(made, "files")
""",
    ),
    EscapeProgram(
        name="links, directories and long names without number",
        family=Family.DISK,
        mechanism=Mechanism.FILES,
        ends=FILES_REFUSED,
        limits=SandboxLimits(disk_mb=8, memory_mb=64),
        source="""
made = 0
tried()
open("/tmp/one", "w").close()
makers = (
    lambda name: os.link("/tmp/one", name),
    lambda name: os.symlink("t" * 4000, name + "s"),
    lambda name: os.mkdir(name + "d"),
)
for make in makers:
    for number in range(40000):
        try:
            make(f"/tmp/{number}" + "n" * 200)
        except OSError:
            break
        made += 1
if made > 70000:
    escaped(made, "entries")
""",
    ),
    EscapeProgram(
        name="extended attributes as a store",
        family=Family.DISK,
        mechanism=Mechanism.FILES,
        ends=FILES_REFUSED,
        limits=SandboxLimits(disk_mb=8, memory_mb=64),
        source="""
held = 0
tried()
for number in range(4000):
    open(f"/dev/shm/{number}", "w").close()
    try:
        os.setxattr(f"/dev/shm/{number}", "user.x", bytes(60000))
    except OSError:
        break
    held += 60000
if held > 64 << 20:
    escaped(held >> 20, "MB")
""",
    ),
    EscapeProgram(
        name="deleted files that stay open",
        family=Family.DISK,
        mechanism=Mechanism.TMPFS,
        limits=SandboxLimits(disk_mb=8),
        source="""
written, kept = 0, []
for number in range(40):
    kept.append(os.open("/tmp/deleted", os.O_CREAT | os.O_RDWR))
    os.unlink("/tmp/deleted")
    written += attempt(os.write, kept[-1], bytes(1 << 20)) or 0
tried()
if written > 10 << 20:
    escaped(written >> 20, "MB")
""",
    ),
    EscapeProgram(
        name="truncate files whose pages wait in a pipe",
        family=Family.DISK,
        mechanism=Mechanism.PIPE_PAGES,
        limits=SandboxLimits(disk_mb=8),
        source="""
held, ends = 0, []
for number in range(100):
    ends.append(os.pipe())
    descriptor = os.open("/tmp/spliced", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    os.write(descriptor, bytes(65536))
    os.lseek(descriptor, 0, 0)
    os.set_blocking(ends[-1][1], False)
    held += attempt(os.splice, descriptor, ends[-1][1], 65536) or 0
    os.ftruncate(descriptor, 0)
    os.close(descriptor)
tried()
if held > 80 << 20:
    escaped(held >> 20, "MB")
""",
    ),
    EscapeProgram(
        name="leave files for the next run",
        family=Family.DISK,
        mechanism=Mechanism.TMPFS,
        source="""
for place in ("/tmp", "/dev/shm"):
    left = f"{place}/left-behind-{host['token']}"
    open(left, "w").write("x")
tried()
""",
    ),
)

PROCESS_PROGRAMS = (
    EscapeProgram(
        name="fork bomb",
        family=Family.PROCESSES,
        mechanism=Mechanism.PROCESSES,
        ends=frozenset({"time", "memory", "processes"}),
        seconds=2,
        limits=SandboxLimits(processes=30),
        source="""
tried()
deadline = time.monotonic() + 8
while time.monotonic() < deadline:
    attempt(os.fork)
""",
    ),
    EscapeProgram(
        name="more processes than allowed",
        family=Family.PROCESSES,
        mechanism=Mechanism.PROCESSES,
        ends=PROCESSES_REFUSED,
        limits=SandboxLimits(processes=30),
        source="""
tried()
born = 0
for _ in range(300):
    child = attempt(os.fork)
    if child == 0:
        time.sleep(8)
        os._exit(0)
    born += child is not None
if born >= 30:
    escaped(born)
""",
    ),
    EscapeProgram(
        name="more threads than allowed",
        family=Family.PROCESSES,
        mechanism=Mechanism.PROCESSES,
        ends=PROCESSES_REFUSED,
        limits=SandboxLimits(processes=30),
        source="""
import _thread
_thread.stack_size(65536)
tried()
born = 0
for _ in range(300):
    try:
        _thread.start_new_thread(time.sleep, (8,))
        born += 1
    except RuntimeError:
        break
time.sleep(1)
if born >= 30:
    escaped(born)
os._exit(0)
""",
    ),
    EscapeProgram(
        name="zombies that are never reaped",
        family=Family.PROCESSES,
        mechanism=Mechanism.PROCESSES,
        ends=PROCESSES_REFUSED,
        limits=SandboxLimits(processes=30),
        source="""
tried()
born = 0
for _ in range(300):
    child = attempt(os.fork)
    if child == 0:
        os._exit(0)
    if child is None:
        break
    born += 1
if born >= 30:
    escaped(born)
""",
    ),
    EscapeProgram(
        name="leave a daemon behind",
        family=Family.PROCESSES,
        mechanism=Mechanism.PIDS,
        source="""
tried()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", [host["token"], "30"])
    os._exit(0)
time.sleep(0.1)
""",
    ),
    EscapeProgram(
        name="a daemon that ignores signals and holds the output open",
        family=Family.PROCESSES,
        mechanism=Mechanism.PIDS,
        source="""
import signal
tried()
if os.fork() == 0:
    os.setsid()
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(30)
    escaped("still here")
""",
    ),
    EscapeProgram(
        name="a sibling made by CLONE_PARENT",
        family=Family.PROCESSES,
        mechanism=Mechanism.PIDS,
        source="""
tried()
if call(calls["clone"], 0x00008000 | 17, 0, 0, 0, 0) == 0:
    os.execvp("sleep", [host["token"], "30"])
time.sleep(0.1)
""",
    ),
    EscapeProgram(
        name="die by a signal while children work on",
        family=Family.PROCESSES,
        mechanism=Mechanism.PIDS,
        ends=SIGNALLED,
        source="""
tried()
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        time.sleep(30)
        escaped()
os.kill(os.getpid(), 9)
""",
    ),
    EscapeProgram(
        name="stop every process of the sandbox",
        family=Family.PROCESSES,
        mechanism=Mechanism.TIME,
        ends=TIME,
        seconds=1.5,
        source="""
import signal
tried()
if os.fork() == 0:
    time.sleep(30)
attempt(os.kill, -1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(30)
""",
    ),
    EscapeProgram(
        name="raise its priority",
        family=Family.PROCESSES,
        mechanism=Mechanism.PRIVILEGES,
        source="""
if attempt(os.nice, -5) is not None:
    escaped("nice")
for policy in (1, 2):
    if call(calls["sched_setscheduler"], 0, policy, ctypes.byref(ctypes.c_int(10))) == 0:
        escaped("real-time", policy)
if call(calls["ioprio_set"], 1, 0, 1 << 13) == 0:
    escaped("real-time I/O")
tried()
""",
    ),
)

TIME_PROGRAMS = (
    EscapeProgram(
        name="burn the processor",
        family=Family.TIME,
        mechanism=Mechanism.PROCESSOR,
        ends=TIME,
        limits=SandboxLimits(cpu_seconds=1),
        source="tried()\nwhile True: pass",
    ),
    EscapeProgram(
        name="burn the processor and ignore SIGXCPU",
        family=Family.TIME,
        mechanism=Mechanism.PROCESSOR,
        ends=frozenset({"time", "signal"}),
        limits=SandboxLimits(cpu_seconds=1),
        source="""
import signal
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
tried()
while True: pass
""",
    ),
    EscapeProgram(
        name="a relay of processes, each with fresh processor time",
        family=Family.TIME,
        mechanism=Mechanism.TIME,
        ends=TIME,
        seconds=2,
        limits=SandboxLimits(cpu_seconds=1),
        source="""
tried()
started = time.monotonic()
while time.monotonic() - started < 20:
    until = time.monotonic() + 0.2
    while time.monotonic() < until: pass
    if os.fork():
        os.wait()
        os._exit(0)
escaped()
""",
    ),
    EscapeProgram(
        name="sleep for ever",
        family=Family.TIME,
        mechanism=Mechanism.TIME,
        ends=TIME,
        seconds=1.5,
        source="tried()\ntime.sleep(30)\nescaped()",
    ),
    EscapeProgram(
        name="ignore every signal",
        family=Family.TIME,
        mechanism=Mechanism.TIME,
        ends=TIME,
        seconds=1.5,
        source="""
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
tried()
time.sleep(30)
escaped()
""",
    ),
    EscapeProgram(
        name="compress endless zeros",
        family=Family.TIME,
        mechanism=Mechanism.TIME,
        ends=TIME,
        seconds=1.5,
        source="""
import gzip
tried()
with open("/dev/zero", "rb") as zeros, gzip.open("packed.gz", "wb") as packed:
    for _ in range(20000):
        packed.write(zeros.read(1 << 20))
""",
    ),
    EscapeProgram(
        name="recurse without end",
        family=Family.TIME,
        mechanism=Mechanism.ADDRESS_SPACE,
        ends=frozenset({None, "time", "memory", "signal"}),
        exit_codes=frozenset({0, 1}),
        source="""
sys.setrecursionlimit(10**9)
tried()
def deeper(function): return sorted([1], key=lambda _: function(function))
deeper(deeper)
""",
    ),
    EscapeProgram(
        name="set the clock",
        family=Family.TIME,
        mechanism=Mechanism.PRIVILEGES,
        source="""
now = struct.pack("qq", int(time.time()), 0)
for name, arguments in (("settimeofday", (now, None)), ("clock_settime", (0, now))):
    if call(calls[name], *arguments) == 0:
        escaped(name)
if call(calls["adjtimex"], struct.pack("I", 0x4000) + bytes(252)) >= 0:
    escaped("adjtimex")
tried()
""",
    ),
)

OUTPUT_PROGRAMS = (
    EscapeProgram(
        name="flood standard output",
        family=Family.OUTPUT,
        mechanism=Mechanism.OUTPUT,
        ends=OUTPUT,
        source="""
tried()
for _ in range(256):
    sys.stdout.write("x" * (1 << 20))
escaped()
""",
    ),
    EscapeProgram(
        name="flood both streams from many processes",
        family=Family.OUTPUT,
        mechanism=Mechanism.OUTPUT,
        ends=OUTPUT,
        source="""
tried()
os.fork(); os.fork()
for _ in range(2000):
    os.write(1, b"x" * 65536); os.write(2, b"y" * 65536)
""",
    ),
    EscapeProgram(
        name="flood standard error in single bytes",
        family=Family.OUTPUT,
        mechanism=Mechanism.OUTPUT,
        ends=OUTPUT,
        limits=SandboxLimits(output_kb=16),
        source="""
tried()
for _ in range(1 << 20):
    os.write(2, b"x")
escaped()
""",
    ),
    EscapeProgram(
        name="enlarge the output pipe and leave it full",
        family=Family.OUTPUT,
        mechanism=Mechanism.OUTPUT,
        ends=OUTPUT,
        limits=SandboxLimits(output_kb=16),
        source="""
import fcntl
tried()
attempt(fcntl.fcntl, 1, 1031, 1 << 20)
os.set_blocking(1, False)
while attempt(os.write, 1, b"x" * 4096): pass
os._exit(0)
""",
    ),
    EscapeProgram(
        name="flood from a process that outlives the program",
        family=Family.OUTPUT,
        mechanism=Mechanism.PIDS,
        ends=frozenset({None, "output"}),
        source="""
tried()
if os.fork() == 0:
    os.setsid()
    for _ in range(4000):
        os.write(2, b"x" * 65536)
        time.sleep(0.001)
os._exit(0)
""",
    ),
)
