"""Programs that attack the channels to the executor: environment, reports, descriptors, exit status."""

from executor.sandbox.job import SandboxLimits
from tests.escapes.program import SIGNALLED, EscapeProgram, Family, Mechanism

ENVIRONMENT_PROGRAMS = (
    EscapeProgram(
        name="read the environment of the executor",
        family=Family.ENVIRONMENT,
        mechanism=Mechanism.ENVIRONMENT,
        source="""
tried()
if host["canary"] in repr(dict(os.environ)) or host["canary"] in open("/proc/self/environ").read():
    escaped("canary")
expected = {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "PWD", "OLDPWD", "ESCAPE_PROGRAM"}
if unexpected := set(os.environ) - expected:
    escaped(sorted(unexpected))
""",
    ),
    EscapeProgram(
        name="make the linker load code into prlimit and setpriv",
        family=Family.ENVIRONMENT,
        mechanism=Mechanism.PRIVILEGED_TOOLS,
        env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": "/tmp/linker"},
        source="""
tried()
for name in os.listdir("/tmp"):
    if name.startswith("linker."):
        text = open(f"/tmp/{name}", errors="replace").read()
        if "prlimit" in text or "setpriv" in text or os.stat(f"/tmp/{name}").st_uid != os.getuid():
            escaped(name)
""",
    ),
    EscapeProgram(
        name="put a prlimit of its own first in the path",
        family=Family.ENVIRONMENT,
        mechanism=Mechanism.PRIVILEGED_TOOLS,
        env={"PATH": "/tmp/shown/tools:/usr/local/bin:/usr/bin:/bin"},
        source="""
import resource
tried()
if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
    escaped("without limits")
""",
    ),
    EscapeProgram(
        name="variables that the C library reads before main",
        family=Family.ENVIRONMENT,
        mechanism=Mechanism.PRIVILEGED_TOOLS,
        env={
            "LD_PRELOAD": "/tmp/shown/tools/missing.so",
            "LD_AUDIT": "/tmp/shown/tools/missing.so",
            "LD_LIBRARY_PATH": "/tmp/shown/tools",
            "GCONV_PATH": "/tmp/shown/tools",
            "LOCPATH": "/tmp/shown/tools",
            "LD_DEBUG": "files",
            "LD_DEBUG_OUTPUT": "/tmp/linker",
        },
        source="""
tried()
for name in os.listdir("/tmp"):
    if name.startswith("linker."):
        text = open(f"/tmp/{name}", errors="replace").read()
        if "prlimit" in text or "setpriv" in text:
            escaped(name)
""",
    ),
)

REPORT_PROGRAMS = (
    EscapeProgram(
        name="find more descriptors than the usual three",
        family=Family.REPORTS,
        mechanism=Mechanism.DESCRIPTORS,
        source="""
tried()
listed = os.open("/proc/self/fd", os.O_RDONLY)
for name in os.listdir(listed):
    if int(name) > 2 and int(name) != listed and attempt(os.fstat, int(name)):
        escaped(name, attempt(os.readlink, f"/proc/self/fd/{name}"))
for number in range(3):
    if attempt(os.stat, f"/proc/self/fd/{number}/.."):
        escaped("a directory", number)
""",
    ),
    EscapeProgram(
        name="open more descriptors than allowed",
        family=Family.REPORTS,
        mechanism=Mechanism.OPEN_FILES,
        limits=SandboxLimits(open_files=32),
        source="""
opened = []
while len(opened) < 1000 and (descriptor := attempt(os.open, "/dev/null", os.O_RDONLY)) is not None:
    opened.append(descriptor)
tried()
if len(opened) > 32:
    escaped(len(opened))
""",
    ),
    EscapeProgram(
        name="flood the report socket",
        family=Family.REPORTS,
        mechanism=Mechanism.REPORT_CAPS,
        reports=True,
        seconds=3,
        ends=frozenset({None, "time"}),
        source="""
tried()
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["SCORELINE_REPORT"])
peer.settimeout(1)
line = b'{"type": "progress", "done": 1, "of": 2}\\n' * 1000
sent = 0
while sent < 64 << 20 and (done := attempt(peer.send, line)):
    sent += done
if sent >= 64 << 20:
    escaped(sent >> 20, "MB read")
""",
    ),
    EscapeProgram(
        name="one report line without end",
        family=Family.REPORTS,
        mechanism=Mechanism.REPORT_CAPS,
        reports=True,
        seconds=5,
        ends=frozenset({None, "time"}),
        source="""
tried()
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["SCORELINE_REPORT"])
peer.settimeout(1)
sent = 0
while sent < 64 << 20 and (done := attempt(peer.send, b"x" * 65536)):
    sent += done
if sent >= 64 << 20:
    escaped(sent >> 20, "MB read")
""",
    ),
    EscapeProgram(
        name="nested and enormous JSON reports",
        family=Family.REPORTS,
        mechanism=Mechanism.REPORT_CAPS,
        reports=True,
        source="""
tried()
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["SCORELINE_REPORT"])
peer.settimeout(2)
for line in (b"[" * 500000, b'{"a":' * 300000, b'{"type":"progress","done":' + b"9" * 500000 + b',"of":1}',
             b'{"type":"result","output":"\\\\ud800"}', b"\\xff\\xfe", b"null", b"{}"):
    attempt(peer.sendall, line + b"\\n")
peer.close()
""",
    ),
    EscapeProgram(
        name="hundreds of report connections left open",
        family=Family.REPORTS,
        mechanism=Mechanism.REPORT_CAPS,
        reports=True,
        source="""
tried()
peers = []
for _ in range(200):
    peer = socket.socket(socket.AF_UNIX)
    peer.setblocking(False)
    if attempt(lambda: peer.connect(os.environ["SCORELINE_REPORT"]) or True):
        attempt(peer.send, b'{"type": "running"')
    peers.append(peer)
""",
    ),
    EscapeProgram(
        name="pass descriptors to the executor",
        family=Family.REPORTS,
        mechanism=Mechanism.REPORT_CAPS,
        reports=True,
        source="""
import array
tried()
def carry(peer):
    carried = array.array("i", [os.open("/proc/1", os.O_RDONLY) for _ in range(20)])
    for _ in range(8):
        attempt(peer.sendmsg, [b" "], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, carried)])
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["SCORELINE_REPORT"])
carry(peer)
if attempt(lambda: socket.socket(fileno=os.dup(0)).getpeername()) is not None:
    carry(socket.socket(fileno=os.dup(0)))
""",
    ),
    EscapeProgram(
        name="replace or remove the report socket",
        family=Family.REPORTS,
        mechanism=Mechanism.READ_ONLY,
        reports=True,
        source="""
tried()
path = os.environ["SCORELINE_REPORT"]
ways = (
    lambda: os.unlink(path) or True,
    lambda: os.rename(path, path + "2") or True,
    lambda: os.chmod(path, 0o777) or True,
    lambda: open(os.path.dirname(path) + "/x", "w"),
    lambda: os.symlink("/etc", os.path.dirname(path) + "/y") or True,
)
for number, way in enumerate(ways):
    if attempt(way):
        escaped("way", number)
if os.listdir(os.path.dirname(path)) != [os.path.basename(path)]:
    escaped("reports of other runs")
""",
    ),
    EscapeProgram(
        name="forge a second result",
        family=Family.REPORTS,
        mechanism=Mechanism.REPORT_CAPS,
        reports=True,
        result="first",
        source="""
tried()
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["SCORELINE_REPORT"])
for output in ("first", "second", "third"):
    peer.sendall(json.dumps({"type": "result", "output": output}).encode() + b"\\n")
""",
    ),
    EscapeProgram(
        name="change the flags of shared descriptors",
        family=Family.REPORTS,
        mechanism=Mechanism.DESCRIPTORS,
        source="""
import fcntl
tried()
for number in (0, 1, 2):
    flags = os.O_NONBLOCK | 0o20000
    for request, value in ((4, flags), (8, 1), (10, 9), (1031, 4096), (1024, 0), (1026, 0x1F)):
        attempt(fcntl.fcntl, number, request, value)
os.set_blocking(1, True)
os.set_blocking(2, True)
""",
    ),
)

TERMINAL_PROGRAMS = (
    EscapeProgram(
        name="type into the terminal of the executor",
        family=Family.TERMINAL,
        mechanism=Mechanism.SESSION,
        source="""
import fcntl
tried()
terminal = attempt(os.open, "/dev/tty", os.O_RDWR)
if terminal is not None:
    escaped("a controlling terminal")
for descriptor in (0, 1, 2, terminal):
    if descriptor is not None and attempt(fcntl.ioctl, descriptor, 0x5412, b"x") is not None:
        escaped("typed")
if os.getsid(0) == 0 or os.getpgrp() == 0:
    escaped("a session of the host")
""",
    ),
    EscapeProgram(
        name="print control sequences of terminals",
        family=Family.TERMINAL,
        mechanism=Mechanism.PRINTABLE,
        source=r"""
tried()
for text in ("\x1b]0;title\x07", "\x1b[2J\x1b[H", "\x1b]52;c;AAAA\x07", "\x1bP$q\x1b\\", "\x1b[6n",
             "\x9b31m", "\r\x08\x7f", "\u202e\u2066", "\x1b]8;;http://127.0.0.1/\x07"):
    sys.stdout.write(text)
    sys.stderr.write(text)
""",
    ),
    EscapeProgram(
        name="print bytes that are no text",
        family=Family.TERMINAL,
        mechanism=Mechanism.PRINTABLE,
        source=r"""
tried()
os.write(1, bytes(range(256)) * 16)
os.write(2, b"\xed\xa0\x80\xff\xfe\x00" * 64)
""",
    ),
)

EXIT_PROGRAMS = (
    EscapeProgram(
        name="print the account of a run that ended well",
        family=Family.EXIT_STATUS,
        mechanism=Mechanism.STATUS,
        exit_codes=frozenset({3}),
        source="""
tried()
account = b'{ "exit-code": 0 }\\n'
for number in range(64):
    attempt(os.write, number, account)
os._exit(3)
""",
    ),
    EscapeProgram(
        name="write a good exit status into descriptors of pid 1",
        family=Family.EXIT_STATUS,
        mechanism=Mechanism.OWN_UID,
        mechanism_in_user_namespace=Mechanism.NOT_DUMPABLE,
        exit_codes=frozenset({3}),
        source="""
tried()
for pid in (1, os.getppid()):
    for number in range(24):
        opened = attempt(os.open, f"/proc/{pid}/fd/{number}", os.O_WRONLY | os.O_NONBLOCK)
        pidfd = call(calls["pidfd_open"], pid, 0)
        taken = call(calls["pidfd_getfd"], pidfd, number, 0)
        for descriptor in (opened, taken):
            if descriptor is not None and descriptor >= 0:
                attempt(os.write, descriptor, struct.pack("Q", 1))
                attempt(os.write, descriptor, b'{ "exit-code": 0 }\\n')
os._exit(3)
""",
    ),
    EscapeProgram(
        name="die by a signal while a child ends with 0",
        family=Family.EXIT_STATUS,
        mechanism=Mechanism.STATUS,
        ends=SIGNALLED,
        exit_codes=frozenset({137}),
        source="""
tried()
if os.fork() == 0:
    os.setsid()
    time.sleep(0.05)
    os._exit(0)
os.kill(os.getpid(), 9)
""",
    ),
    EscapeProgram(
        name="end with 0 in the moment of the time limit",
        family=Family.EXIT_STATUS,
        mechanism=Mechanism.TIME,
        ends=frozenset({"time"}),
        seconds=1.5,
        limits=SandboxLimits(processes=8),
        source="""
import signal
tried()
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, lambda *_: os._exit(0))
while True:
    time.sleep(30)
""",
    ),
)
