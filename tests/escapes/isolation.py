"""Programs that attack namespaces, keyrings, pid 1, other processes and the system call filter itself."""

from tests.escapes.program import SIGNALLED, TIME, EscapeProgram, Family, Mechanism

NAMESPACE_PROGRAMS = (
    EscapeProgram(
        name="make namespaces by unshare",
        family=Family.NAMESPACES,
        mechanism=Mechanism.SECCOMP,
        source="""
for flags in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    refused("unshare", flags)
tried()
""",
    ),
    EscapeProgram(
        name="make namespaces by clone",
        family=Family.NAMESPACES,
        mechanism=Mechanism.SECCOMP,
        source="""
for flags in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x7C020000):
    done = call(calls["clone"], flags | 17, 0, 0, 0, 0)
    if done == 0:
        os._exit(0)
    if done > 0:
        escaped(hex(flags))
tried()
""",
    ),
    EscapeProgram(
        name="make namespaces by clone3, whose flags lie in memory",
        family=Family.NAMESPACES,
        mechanism=Mechanism.SECCOMP,
        source="""
for flags in (0x10000000, 0x30000000, 0x20000, 0x80, 0x200000000):
    request = ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)
    done = call(calls["clone3"], request, 88)
    if done == 0:
        os._exit(0)
    if done > 0 or done != -errno.ENOSYS:
        escaped(hex(flags), done)
tried()
""",
    ),
    EscapeProgram(
        name="join the namespaces of another process",
        family=Family.NAMESPACES,
        mechanism=Mechanism.SECCOMP,
        source="""
import fcntl
for pid in (1, os.getppid()):
    for name in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup"):
        descriptor = attempt(os.open, f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        refused("setns", -1 if descriptor is None else descriptor, 0)
for name in ("user", "pid"):
    descriptor = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
    for request in (0xB701, 0xB702):
        parent = attempt(fcntl.ioctl, descriptor, request)
        if parent is not None and parent >= 0:
            refused("setns", parent, 0)
tried()
""",
    ),
    EscapeProgram(
        name="rewrite the maps of user and group ids",
        family=Family.NAMESPACES,
        mechanism=Mechanism.PRIVILEGES,
        source="""
tried()
for pid in ("self", 1):
    for name, text in (("uid_map", "0 0 1"), ("gid_map", "0 0 1"), ("projid_map", "0 0 1")):
        def write():
            descriptor = os.open(f"/proc/{pid}/{name}", os.O_WRONLY)
            return os.write(descriptor, text.encode())
        if attempt(write):
            escaped(pid, name)
if os.getuid() == 0 or os.geteuid() == 0:
    escaped("root")
""",
    ),
    EscapeProgram(
        name="build a sandbox inside the sandbox",
        family=Family.NAMESPACES,
        mechanism=Mechanism.SECCOMP,
        source="""
import subprocess
tried()
for command in (
    ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"],
    ["bwrap", "--ro-bind", "/", "/", "true"],
    ["unshare", "--user", "--map-root-user", "true"],
    ["nsenter", "--target", "1", "--mount", "true"],
):
    done = attempt(subprocess.run, command, capture_output=True)
    if done is not None and done.returncode == 0:
        escaped(command[0])
""",
    ),
)

KEYRING_PROGRAMS = (
    EscapeProgram(
        name="add, find and read keys",
        family=Family.KEYRINGS,
        mechanism=Mechanism.SECCOMP,
        source="""
refused("add_key", b"user", b"name", b"value", 5, -3)
refused("request_key", b"user", host["key"].encode(), None, -3)
for keyring in (-1, -2, -3, -4, -5):
    refused("keyctl", 0, keyring, 0)
    refused("keyctl", 11, keyring, ctypes.create_string_buffer(64), 64)
refused("keyctl", 1, b"_ses")
refused("keyctl", 22, -1, -3)
tried()
""",
    ),
    EscapeProgram(
        name="list the keys of the host",
        family=Family.KEYRINGS,
        mechanism=Mechanism.READ_ONLY,
        source="""
tried()
for path in ("/proc/keys", "/proc/key-users"):
    if host["key"] in (attempt(lambda: open(path).read()) or ""):
        escaped(path)
""",
    ),
)

SIGNAL_PROGRAMS = (
    EscapeProgram(
        name="kill pid 1, the parent and everything",
        family=Family.SIGNALS,
        mechanism=Mechanism.PIDS,
        ends=SIGNALLED,
        source="""
import signal
tried()
for pid in (host["pid"], 1, os.getppid(), 0):
    if pid:
        attempt(os.kill, pid, signal.SIGKILL)
attempt(os.killpg, os.getpgid(1) if os.getpgid(1) else 1, signal.SIGTERM)
attempt(os.kill, -1, signal.SIGKILL)
""",
    ),
    EscapeProgram(
        name="queue signals to processes of the host",
        family=Family.SIGNALS,
        mechanism=Mechanism.PIDS,
        source="""
tried()
info = ctypes.create_string_buffer(struct.pack("iii", 9, 0, -1) + bytes(116))
for pid in host["pids"]:
    if call(calls["rt_sigqueueinfo"], pid, 9, info) == 0 and pid not in pids():
        escaped("queued", pid)
    if call(calls["tgkill"], pid, pid, 0) == 0 and pid not in pids():
        escaped("tgkill", pid)
    pidfd = call(calls["pidfd_open"], pid, 0)
    if pidfd >= 0 and pid not in pids():
        escaped("pidfd", pid)
""",
    ),
    EscapeProgram(
        name="stop pid 1 and stay",
        family=Family.SIGNALS,
        mechanism=Mechanism.TIME,
        ends=TIME,
        seconds=1.5,
        source="""
import signal
tried()
for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN):
    attempt(os.kill, 1, number)
if os.fork() == 0:
    os.setsid()
    os.execvp("sleep", [host["token"], "30"])
time.sleep(30)
""",
    ),
    EscapeProgram(
        name="rewrite the memory of pid 1 and outlive the case",
        family=Family.SIGNALS,
        mechanism=Mechanism.OWN_UID,
        mechanism_in_user_namespace=Mechanism.NOT_DUMPABLE,
        source="""
tried()
def opened(): return os.open("/proc/1/mem", os.O_RDWR)
descriptor = attempt(opened)
if descriptor is not None:
    for line in open("/proc/1/maps"):
        span, rights, *_ = line.split()
        if "w" in rights:
            at = int(span.split("-")[0], 16)
            byte = attempt(os.pread, descriptor, 1, at)
            if byte and attempt(os.pwrite, descriptor, byte, at):
                escaped("wrote to pid 1")
                break
""",
    ),
    EscapeProgram(
        name="write to pid 1 by process_vm_writev",
        family=Family.SIGNALS,
        mechanism=Mechanism.SECCOMP,
        source="""
piece = ctypes.create_string_buffer(struct.pack("QQ", 0, 0), 16)
refused("process_vm_readv", 1, piece, 1, piece, 1, 0)
refused("process_vm_writev", 1, piece, 1, piece, 1, 0)
tried()
""",
    ),
    EscapeProgram(
        name="take descriptors of pid 1 by pidfd_getfd",
        family=Family.SIGNALS,
        mechanism=Mechanism.SECCOMP,
        source="""
tried()
for pid in (1, os.getppid()):
    pidfd = call(calls["pidfd_open"], pid, 0)
    for number in range(24):
        if call(calls["pidfd_getfd"], pidfd, number, 0) >= 0:
            escaped("descriptor", number, "of", pid)
refused("pidfd_getfd", -1, 0, 0)
""",
    ),
    EscapeProgram(
        name="clear the death signal and change the parent",
        family=Family.SIGNALS,
        mechanism=Mechanism.PIDS,
        source="""
tried()
libc.prctl(1, 0, 0, 0, 0)
libc.prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    libc.prctl(1, 0, 0, 0, 0)
    os.execvp("sleep", [host["token"], "30"])
time.sleep(0.1)
""",
    ),
)

TRACING_PROGRAMS = (
    EscapeProgram(
        name="trace processes",
        family=Family.TRACING,
        mechanism=Mechanism.SECCOMP,
        source="""
for request in (0, 16, 0x4206):
    for pid in (host["pid"], 1, os.getppid(), 0):
        refused("ptrace", request, pid, 0, 0)
refused("kcmp", 1, os.getpid(), 0, 0, 0)
tried()
""",
    ),
    EscapeProgram(
        name="read the environment of other processes",
        family=Family.TRACING,
        mechanism=Mechanism.PIDS,
        succeeds_unconfined=True,
        source="""
tried()
for pid in pids():
    if host["canary"] in (attempt(lambda: open(f"/proc/{pid}/environ").read()) or ""):
        escaped(pid)
""",
    ),
    EscapeProgram(
        name="read the command lines of other processes",
        family=Family.TRACING,
        mechanism=Mechanism.PIDS,
        succeeds_unconfined=True,
        source="""
tried()
for pid in pids():
    if host["marker"] in (attempt(lambda: open(f"/proc/{pid}/cmdline").read()) or ""):
        escaped(pid)
""",
    ),
    EscapeProgram(
        name="read the memory and descriptors of pid 1",
        family=Family.TRACING,
        mechanism=Mechanism.OWN_UID,
        mechanism_in_user_namespace=Mechanism.NOT_DUMPABLE,
        source="""
tried()
for number in attempt(os.listdir, "/proc/1/fd") or []:
    for mode in (os.O_RDONLY, os.O_WRONLY):
        opened = attempt(os.open, f"/proc/1/fd/{number}", mode | os.O_NONBLOCK)
        if opened is not None and not os.path.samestat(os.fstat(opened), os.stat("/dev/null")):
            kept = attempt(os.readlink, f"/proc/1/fd/{number}")
            if not any(attempt(os.readlink, f"/proc/self/fd/{own}") == kept for own in (0, 1, 2)):
                escaped("descriptor", number, kept)
for pid in (1, os.getppid()):
    text = (attempt(lambda: open(f"/proc/{pid}/environ").read()) or "")
    if host["canary"] in text or host["shown"] in text:
        escaped("environment of", pid)
""",
    ),
    EscapeProgram(
        name="see mounts, paths and addresses of the host",
        family=Family.TRACING,
        mechanism=Mechanism.MOUNTS,
        source="""
tried()
for name in ("mountinfo", "mounts", "maps", "cmdline", "environ", "cgroup"):
    for pid in ("self", 1):
        if host["canary"] in (attempt(lambda: open(f"/proc/{pid}/{name}").read()) or ""):
            escaped(pid, name)
built = "bin dev etc init lib lib32 lib64 proc run sbin tmp usr".split()
if seen := set(os.listdir("/")) - {*built, host["base"]}:
    escaped(seen)
""",
    ),
)

ABI_PROGRAMS = (
    EscapeProgram(
        name="x32 numbers of refused calls",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        source="""
for number in (272, 165, 101, 319, 425, 321, 521, 539, 41):
    done = call(0x40000000 | number, 0x10000000, 0, 0, 0, 0)
    if done not in (-errno.EPERM, -errno.ENOSYS):
        escaped(number, done)
tried()
""",
    ),
    EscapeProgram(
        name="the 32-bit entry by int 0x80",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        ends=SIGNALLED,
        source="""
import mmap, platform
tried()
def interrupt(number, argument):
    loads = b"\\x53\\xb8" + struct.pack("I", number) + b"\\xbb" + struct.pack("I", argument)
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    memory.write(loads + b"\\xcd\\x80\\x5b\\xc3")
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
if platform.machine() == "x86_64":
    for number, argument in ((310, 0x10000000), (20, 0), (425, 8), (358, 1)):
        done = interrupt(number, argument)
        if done not in (-errno.EPERM, -errno.ENOSYS, -errno.EFAULT) or (number == 20 and done > 0):
            escaped(number, done)
""",
    ),
    EscapeProgram(
        name="numbers that are out of range",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        source="""
for number in (-1, 1 << 31, 0x7FFFFFFF, 0x40000000, 0xFFFFFFFF, 5000):
    if call(number, 0, 0, 0) >= 0:
        escaped(number)
high = ctypes.c_long((1 << 32) | calls["unshare"])
if libc.syscall(high, ctypes.c_long(0x10000000)) == 0:
    escaped("high bits")
tried()
""",
    ),
    EscapeProgram(
        name="io_uring, which makes calls without the filter",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        source="""
refused("io_uring_setup", 8, ctypes.create_string_buffer(120))
refused("io_uring_enter", 0, 1, 0, 0, 0, 0)
refused("io_uring_register", 0, 0, 0, 0)
tried()
""",
    ),
    EscapeProgram(
        name="bpf and perf_event_open",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        source="""
for command in range(8):
    refused("bpf", command, ctypes.create_string_buffer(128), 128)
attributes = ctypes.create_string_buffer(struct.pack("II", 1, 112) + bytes(104))
refused("perf_event_open", attributes, 0, -1, -1, 0)
tried()
""",
    ),
    EscapeProgram(
        name="userfaultfd, by its call and by its device",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        source="""
for flags in (0, 1, os.O_CLOEXEC):
    refused("userfaultfd", flags)
if os.path.exists("/dev/userfaultfd"):
    escaped("device")
tried()
""",
    ),
    EscapeProgram(
        name="a filter of its own that allows what was refused",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        source="""
class Program(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
libc.prctl(38, 1, 0, 0, 0)
steps = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000))
call(calls["seccomp"], 1, 0, ctypes.byref(Program(1, ctypes.addressof(steps))))
refused("unshare", 0x10000000)
refused("mount", b"none", b"/tmp", b"tmpfs", 0, None)
tried()
""",
    ),
    EscapeProgram(
        name="calls that act on the memory of others",
        family=Family.ABI,
        mechanism=Mechanism.SECCOMP,
        source="""
pidfd = call(calls["pidfd_open"], 1, 0)
refused("process_madvise", pidfd, ctypes.create_string_buffer(16), 1, 21, 0)
refused("process_mrelease", pidfd, 0)
for name in ("migrate_pages", "move_pages"):
    refused(name, 1, 0, 0, 0, 0, 0)
tried()
""",
    ),
)
