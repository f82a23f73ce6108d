"""Programs that reach for the network, the files, the devices and the kernel of the host."""

from tests.escapes.program import EscapeProgram, Family, Mechanism

NETWORK_PROGRAMS = (
    EscapeProgram(
        name="connect to a TCP port of the host",
        family=Family.NETWORK,
        mechanism=Mechanism.NETWORK,
        succeeds_unconfined=True,
        source="""
tried()
if attempt(socket.create_connection, ("127.0.0.1", host["tcp"]), timeout=2):
    escaped()
""",
    ),
    EscapeProgram(
        name="connect to a TCP port of the host over IPv6",
        family=Family.NETWORK,
        mechanism=Mechanism.NETWORK,
        source="""
tried()
for address in ("::1", "::ffff:127.0.0.1"):
    peer = attempt(socket.socket, socket.AF_INET6)
    if peer and attempt(peer.connect, (address, host["tcp"])) is None and attempt(peer.getpeername):
        escaped(address)
""",
    ),
    EscapeProgram(
        name="send a datagram to the host",
        family=Family.NETWORK,
        mechanism=Mechanism.NETWORK,
        succeeds_unconfined=True,
        source="""
tried()
def send():
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.connect(("127.0.0.1", host["udp"]))
    peer.send(b"x")
    time.sleep(0.1)
    return peer.send(b"the first datagram was not refused")
if attempt(send):
    escaped()
""",
    ),
    EscapeProgram(
        name="connect to a Unix socket of the host",
        family=Family.NETWORK,
        mechanism=Mechanism.MOUNTS,
        succeeds_unconfined=True,
        source="""
tried()
def connect():
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(host["socket"])
    return peer
if attempt(connect):
    escaped()
""",
    ),
    EscapeProgram(
        name="connect to an abstract socket of the host",
        family=Family.NETWORK,
        mechanism=Mechanism.NETWORK,
        succeeds_unconfined=True,
        source=r"""
tried()
def connect():
    peer = socket.socket(socket.AF_UNIX)
    peer.connect("\0" + host["abstract"])
    return peer
if attempt(connect):
    escaped()
""",
    ),
    EscapeProgram(
        name="raw and packet sockets",
        family=Family.NETWORK,
        mechanism=Mechanism.PRIVILEGES,
        source="""
tried()
for family, kind, protocol in ((2, 3, 1), (2, 3, 255), (10, 3, 58), (17, 3, 0x300), (17, 2, 0x300)):
    if attempt(socket.socket, family, kind, protocol):
        escaped(family, kind, protocol)
""",
    ),
    EscapeProgram(
        name="every address family but Unix and IP",
        family=Family.NETWORK,
        mechanism=Mechanism.SECCOMP,
        source="""
tried()
for family in range(3, 64):
    for kind in (1, 2, 3, 5):
        if call(calls["socket"], family, kind, 0) >= 0:
            escaped("family", family)
            break
""",
    ),
    EscapeProgram(
        name="configure a network interface",
        family=Family.NETWORK,
        mechanism=Mechanism.PRIVILEGES,
        source="""
import fcntl
tried()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    if attempt(fcntl.ioctl, control, 0x8914, struct.pack("16sh14x", b"lo", 0x49)):
        escaped("lo")
    if attempt(fcntl.ioctl, control, 0x89A0, struct.pack("16s16x", b"bridge0")):
        escaped("bridge")
if os.path.exists("/dev/net/tun"):
    escaped("tun")
""",
    ),
)

FILE_PROGRAMS = (
    EscapeProgram(
        name="read files of the host",
        family=Family.FILES,
        mechanism=Mechanism.MOUNTS,
        succeeds_unconfined=True,
        source="""
tried()
for path in host["secrets"]:
    if os.path.exists(path):
        escaped(path)
""",
    ),
    EscapeProgram(
        name="follow a symbolic link out of a bound folder",
        family=Family.FILES,
        mechanism=Mechanism.MOUNTS,
        succeeds_unconfined=True,
        source="""
tried()
for path in ("shown/link", "shown/way/secret.txt", "shown/../secret.txt", "shown/way/../host/secret.txt"):
    if os.path.exists(path):
        escaped(path)
""",
    ),
    EscapeProgram(
        name="leave by the root or the folder of another process",
        family=Family.FILES,
        mechanism=Mechanism.PIDS,
        succeeds_unconfined=True,
        source="""
tried()
for pid in pids():
    for way in ("root", "cwd"):
        if attempt(os.stat, f"/proc/{pid}/{way}{host['secret']}"):
            escaped(pid, way)
""",
    ),
    EscapeProgram(
        name="write to a bound folder",
        family=Family.FILES,
        mechanism=Mechanism.READ_ONLY,
        source="""
tried()
ways = (
    lambda: open("shown/file.txt", "w"),
    lambda: open("shown/new.txt", "w"),
    lambda: os.chmod("shown/file.txt", 0o777) or True,
    lambda: os.utime("shown/file.txt", (0, 0)) or True,
    lambda: os.unlink("shown/file.txt") or True,
    lambda: os.rename("shown/file.txt", "shown/other.txt") or True,
    lambda: os.setxattr("shown/file.txt", "user.x", b"x") or True,
    lambda: os.link("shown/file.txt", "shown/linked.txt") or True,
)
for number, way in enumerate(ways):
    if attempt(way):
        escaped("way", number)
""",
    ),
    EscapeProgram(
        name="write where programs, devices and settings are",
        family=Family.FILES,
        mechanism=Mechanism.READ_ONLY,
        source="""
tried()
for folder in ("", "/usr", "/etc", "/dev", "/bin", "/lib", "/run", "/proc", "/dev/pts", "/tmp/.."):
    if attempt(open, f"{folder}/escape-{host['token']}", "w"):
        escaped(folder)
""",
    ),
    EscapeProgram(
        name="replace a running program by /proc/self/exe",
        family=Family.FILES,
        mechanism=Mechanism.READ_ONLY,
        source="""
tried()
for pid in ("self", 1, os.getppid()):
    if attempt(os.open, f"/proc/{pid}/exe", os.O_WRONLY) is not None:
        escaped(pid)
""",
    ),
    EscapeProgram(
        name="gain rights by a set-user-id program",
        family=Family.FILES,
        mechanism=Mechanism.PRIVILEGES,
        source="""
tried()
status = open("/proc/self/status").read()
facts = dict(line.split(":", 1) for line in status.splitlines())
if facts["NoNewPrivs"].strip() != "1":
    escaped("new privileges")
for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
    if int(facts[name], 16):
        escaped(name, facts[name])
for change in (os.setuid, os.setgid, os.seteuid, os.setegid):
    if attempt(lambda: change(0) or True):
        escaped(change.__name__)
if attempt(lambda: os.setgroups([0]) or True):
    escaped("groups")
made = "/tmp/setuid"
open(made, "w").close()
attempt(os.chown, made, 0, 0)
if os.stat(made).st_uid == 0 and os.getuid() != 0:
    escaped("chown")
""",
    ),
    EscapeProgram(
        name="open files by their handles",
        family=Family.FILES,
        mechanism=Mechanism.SECCOMP,
        source="""
handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + bytes(120))
refused("name_to_handle_at", -100, b"/usr", handle, ctypes.byref(ctypes.c_int()), 0)
refused("open_by_handle_at", 0, handle, 0)
tried()
""",
    ),
    EscapeProgram(
        name="leave by chroot and pivot_root",
        family=Family.FILES,
        mechanism=Mechanism.SECCOMP,
        source="""
os.mkdir("/tmp/inner")
refused("chroot", b"/tmp/inner")
refused("pivot_root", b"/tmp/inner", b"/tmp/inner")
tried()
""",
    ),
    EscapeProgram(
        name="mount and unmount",
        family=Family.FILES,
        mechanism=Mechanism.SECCOMP,
        source="""
refused("mount", b"none", b"/tmp", b"tmpfs", 0, None)
refused("mount", None, b"/tmp/shown", None, 0x1020, None)
refused("umount2", b"/tmp/shown", 2)
for name in ("open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"):
    refused(name, -100, b"/tmp", 0, 0, 0)
refused("open_tree_attr", -100, b"/tmp", 1, None, 0)
tried()
""",
    ),
)

DEVICE_PROGRAMS = (
    EscapeProgram(
        name="open devices of the host",
        family=Family.DEVICES,
        mechanism=Mechanism.DEVICES,
        source="""
tried()
allowed = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "core",
           "console", "stdin", "stdout", "stderr"}
for name in os.listdir("/dev"):
    if name not in allowed:
        escaped(name)
for name in ("mem", "kmsg", "kvm", "fuse", "loop-control", "loop0", "vda", "sda", "net/tun", "console"):
    if attempt(os.open, f"/dev/{name}", os.O_RDWR) is not None:
        escaped(name)
""",
    ),
    EscapeProgram(
        name="make device nodes",
        family=Family.DEVICES,
        mechanism=Mechanism.PRIVILEGES,
        source="""
import stat
tried()
for kind, major, minor in ((stat.S_IFCHR, 1, 1), (stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 7, 0)):
    name = f"/tmp/node-{major}-{minor}"
    if attempt(lambda: os.mknod(name, kind | 0o666, os.makedev(major, minor)) or True):
        if attempt(os.open, name, os.O_RDONLY) is not None:
            escaped(name)
""",
    ),
    EscapeProgram(
        name="open pseudo-terminals of the host",
        family=Family.DEVICES,
        mechanism=Mechanism.DEVICES,
        source="""
tried()
if [name for name in os.listdir("/dev/pts") if name.isdigit()]:
    escaped("pseudo-terminals of others")
opened = []
while len(opened) < 200 and (descriptor := attempt(os.open, "/dev/ptmx", os.O_RDWR | os.O_NOCTTY)):
    opened.append(descriptor)
""",
    ),
)

KERNEL_PROGRAMS = (
    EscapeProgram(
        name="write settings of the kernel",
        family=Family.KERNEL,
        mechanism=Mechanism.READ_ONLY,
        source="""
tried()
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        if attempt(os.open, f"{folder}/{name}", os.O_WRONLY) is not None:
            escaped(f"{folder}/{name}")
if attempt(os.open, "/proc/sysrq-trigger", os.O_WRONLY) is not None:
    escaped("sysrq")
""",
    ),
    EscapeProgram(
        name="write to the rest of /proc",
        family=Family.KERNEL,
        mechanism=Mechanism.PRIVILEGES,
        source="""
tried()
skipped = {"self", "thread-self", "sys", "net", "mounts"}
for name in os.listdir("/proc"):
    if name in skipped or name.isdigit():
        continue
    top = f"/proc/{name}"
    found = [f"{folder}/{each}" for folder, _, files in os.walk(top) for each in files] or [top]
    for path in found:
        if attempt(os.open, path, os.O_WRONLY | os.O_NONBLOCK) is not None:
            escaped(path)
""",
    ),
    EscapeProgram(
        name="read the memory and the log of the kernel",
        family=Family.KERNEL,
        mechanism=Mechanism.PRIVILEGES,
        source="""
tried()
kernel = [f"/proc/{name}" for name in os.listdir("/proc") if os.path.isfile(f"/proc/{name}")]
for path in kernel + ["/dev/mem", "/dev/port", "/proc/kcore", "/proc/kmsg"]:
    found = attempt(os.stat, path)
    hidden = found and not found.st_mode & 0o004
    if hidden and attempt(os.open, path, os.O_RDONLY | os.O_NONBLOCK) is not None:
        escaped(path)
for path in ("/proc/kcore", "/proc/kmsg", "/proc/kpageflags", "/proc/vmallocinfo", "/proc/timer_list"):
    if attempt(os.open, path, os.O_RDONLY | os.O_NONBLOCK) is not None:
        escaped(path)
addresses = {line.split()[0] for line in (attempt(open, "/proc/kallsyms") or [])}
if addresses - {"0" * 16, "0" * 8, "(____ptrval____)"}:
    escaped("addresses of the kernel")
refused("syslog", 3, ctypes.create_string_buffer(64), 64)
""",
    ),
    EscapeProgram(
        name="find sysfs, cgroups, debugfs or bpffs",
        family=Family.KERNEL,
        mechanism=Mechanism.MOUNTS,
        succeeds_unconfined=True,
        source="""
tried()
for path in ("/sys/kernel", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/fs/bpf"):
    if os.path.exists(path):
        escaped(path)
""",
    ),
    EscapeProgram(
        name="load code into the kernel, boot another one, switch swap",
        family=Family.KERNEL,
        mechanism=Mechanism.SECCOMP,
        source="""
for name in ("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load"):
    refused(name, -1, 0, 0, 0, 0)
refused("swapon", b"/tmp/none", 0)
refused("swapoff", b"/tmp/none")
refused("acct", b"/tmp/none")
refused("quotactl", 0x80000100, b"/dev/none", 0, 0)
refused("vhangup")
refused("reboot", 0, 0, 0, 0)
tried()
""",
    ),
    EscapeProgram(
        name="use up the asynchronous I/O contexts of the host",
        family=Family.KERNEL,
        mechanism=Mechanism.SECCOMP,
        source="""
refused("io_setup", 1 << 14, ctypes.byref(ctypes.c_ulong(0)))
tried()
""",
    ),
    EscapeProgram(
        name="spare itself from the out-of-memory killer",
        family=Family.KERNEL,
        mechanism=Mechanism.PRIVILEGES,
        source="""
tried()
now = int(open("/proc/self/oom_score_adj").read())
for pid in ("self", 1):
    def write():
        with open(f"/proc/{pid}/oom_score_adj", "w", buffering=1) as file:
            return file.write(f"{now - 1}\\n")
    if now > -1000 and attempt(write):
        escaped(pid)
""",
    ),
    EscapeProgram(
        name="rename the host",
        family=Family.KERNEL,
        mechanism=Mechanism.PRIVILEGES,
        source="""
for name in ("sethostname", "setdomainname"):
    if call(calls[name], b"escaped", 7) == 0:
        escaped(name)
tried()
if os.uname().nodename == host["nodename"]:
    escaped("the name of the host")
""",
    ),
)
