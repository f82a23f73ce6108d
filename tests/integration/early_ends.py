"""Answers that are wrong and try to pass: each ends its process early, or forges the report of its end.

Every program is tested by `assert solve() == 42`, and none of them has a `solve` that returns 42.
"""

WRONG = "\ndef solve():\n    return 0\n"
_EVERYTHING = """
import gc, os, sys
found = [open(__file__, "rb").read(), repr(sys.argv).encode(), repr(dict(os.environ)).encode()]
for name in ("cmdline", "environ"):
    for pid in ("self", str(os.getppid()), "1"):
        try:
            found.append(open(f"/proc/{pid}/{name}", "rb").read())
        except OSError:
            pass
for folder in (".", "/run", "/run/scoreline", "/dev/shm"):
    for entry in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            found.append(open(os.path.join(folder, entry), "rb").read(10_000))
        except OSError:
            pass
frame = sys._getframe()
while frame:
    found.append(repr(frame.f_locals).encode())
    frame = frame.f_back
found += [each.encode() for each in gc.get_objects() if isinstance(each, str)]
"""
"""Collects whatever a program can read that may hold a secret."""

_FORGE = """
import os, select
def forge(tickets):
    for n in sorted(map(int, os.listdir("/proc/self/fd"))):
        for ticket in tickets:
            try:
                if not os.readlink(f"/proc/self/fd/{n}").startswith("socket:"):
                    break
                os.write(n, ticket)
                if select.select([n], [], [], 0.2)[0]:
                    os.write(n, os.read(n, 32))
                    os._exit(0)
            except OSError:
                break
    os._exit(0)
"""
"""Sends tickets to every socket, and returns what it receives."""

_OBJECTS = """
import gc, sys
frame, seen = sys._getframe().f_back, []
while frame:
    seen += [*frame.f_locals.values(), *gc.get_referents(frame)]
    frame = frame.f_back
for one in gc.get_objects():
    seen += gc.get_referents(one)
found = [each for each in seen if type(each) is bytes and len(each) == 32]
"""
"""Collects every text of a ticket's length that the interpreter lets a program find."""

EARLY_ENDS = {
    "os._exit": "import os\nos._exit(0)",
    "SystemExit": "raise SystemExit(0)",
    "SystemExit without a code": "raise SystemExit",
    "sys.exit in the function": "def solve():\n    import sys\n    sys.exit(0)",
    "quit": "quit()",
    "atexit handler": "import atexit, os\natexit.register(os._exit, 0)" + WRONG,
    "exception hook": "import os, sys\nsys.excepthook = lambda *_: os._exit(0)" + WRONG,
    "unraisable hook": "import os, sys\nsys.unraisablehook = lambda *_: os._exit(0)\n"
    "class End:\n    def __del__(self):\n        raise ValueError\nend = End()" + WRONG,
    "destructor": "import os\nclass End:\n    def __del__(self, end=os._exit):\n        end(0)\n"
    "end = End()" + WRONG,
    "standard error that ends": "import os, sys\nclass End:\n    def write(self, _):\n        os._exit(0)\n"
    "    flush = write\nsys.stderr = End()" + WRONG,
    "trace function": "import os, sys\nsys.settrace(lambda *_: os._exit(0))" + WRONG,
    "profile function": "import os, sys\nsys.setprofile(lambda *_: os._exit(0))" + WRONG,
    "object that ends when compared": "import os\nclass End:\n    def __eq__(self, _):\n"
    "        os._exit(0)\ndef solve():\n    return End()",
    "thread": "import os, threading, time\nthreading.Thread(target=lambda: os._exit(0)).start()\n"
    "def solve():\n    time.sleep(30)",
    "thread and an endless loop": "import os, threading\nthreading.Timer(0.05, os._exit, (0,)).start()\n"
    "def solve():\n    while True: pass",
    "alarm signal": "import os, signal, time\nsignal.signal(signal.SIGALRM, lambda *_: os._exit(0))\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.05)\ndef solve():\n    time.sleep(30)",
    "termination signal": "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: os._exit(0))\n"
    "os.kill(os.getpid(), signal.SIGTERM)" + WRONG,
    "exec of another program": "import os\nos.execv('/bin/true', ['true'])",
    "exec of itself without assertions": "import os, sys\n"
    "if __debug__:\n    os.execv(sys.executable, [sys.executable, '-O', __file__])" + WRONG,
    "fork, and the parent ends": "import os\nif os.fork():\n    os._exit(0)" + WRONG,
    "fork, and only the child goes on": "import os\nif os.fork():\n    os.wait()\n    os._exit(0)\n"
    "def solve():\n    return 42",
    "replaced exit": "import builtins, os, sys\nsys.exit = builtins.exit = lambda *_: os._exit(0)"
    "\ndef solve():\n    sys.exit(1)",
    "replaced unittest.main": "import os, unittest\nunittest.main = lambda *_, **__: os._exit(0)\n"
    "def solve():\n    unittest.main()",
    "prints a pass": "print('passed\\nOK')\nimport os\nos._exit(0)",
    "closed descriptors": "import os\nos.closerange(0, 10_000)\nos._exit(0)",
    "writes to every descriptor": "import os\nfor n in map(int, os.listdir('/proc/self/fd')):\n    try:\n"
    "        os.write(n, bytes(128))\n    except OSError:\n        pass\nos._exit(0)",
    "speaks the protocol": _FORGE + "forge([bytes(32)])",
    "speaks the protocol with all it can find": _EVERYTHING + _FORGE + _OBJECTS + "forge(found)",
    "starts its driver again": "import os, signal, sys\nchannel = os.open('/proc/self/cmdline', 0)\n"
    "words = os.read(channel, 9999).split(b'\\0')[:-1]\nos.set_inheritable(int(words[-1]), True)\n"
    "if __debug__:\n    signal.alarm(2)\n"
    "    os.execv(sys.executable, [words[0], b'-O', *words[1:]])" + WRONG,
    "writes all it can read to every descriptor": _EVERYTHING
    + "for n in map(int, os.listdir('/proc/self/fd')):\n"
    "    for text in found[:200]:\n        try:\n            os.write(n, text[:64])\n"
    "        except OSError:\n            break\nos._exit(0)",
    "shuts every socket down": "import os, socket\n"
    "for n in map(int, os.listdir('/proc/self/fd')):\n    try:\n"
    "        socket.socket(fileno=n).shutdown(2)\n    except OSError:\n        pass\nos._exit(0)",
    "kills its parent": "import os\nos.kill(os.getppid(), 9)\nos._exit(0)",
}  # fmt: skip
