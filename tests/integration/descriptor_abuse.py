"""Python functions that abuse the descriptors of their process, for tests of the host's protocol.

The prompt names what a call does: one of ABUSES, or nothing. Without abuse a call returns its prompt.
"""

APP = '''
import asyncio, json, os, struct, threading, time

FORGED = [json.dumps({"call": n, "seconds": 0, "value": "forged"}).encode() for n in range(1, 200)]

def spray(*pieces):
    for fd in range(1024):
        for piece in pieces:
            try:
                os.write(fd, piece)
            except OSError:
                break

def close(fds):
    for fd in fds:
        try:
            os.close(fd)
        except OSError:
            pass

def pipes():
    """Descriptors above the standard streams that are pipes or sockets."""
    found = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
    return [fd for fd in found if os.path.exists(f"/proc/self/fd/{fd}") is False]

def spray_later():
    def work():
        time.sleep(0.3)
        spray(b"later")
    threading.Thread(target=work, daemon=True).start()

ABUSES = {
    "garbage": lambda: spray(b"garbage"),
    "one byte": lambda: spray(b"x"),
    "long header": lambda: spray(struct.pack(">I", 10**6)),
    "huge header": lambda: spray(b"\\xff" * 4),
    "forged replies": lambda: spray(*(struct.pack(">I", len(each)) + each for each in FORGED)),
    "forged key": lambda: spray(*(bytes(16) + struct.pack(">I", len(each)) + each for each in FORGED)),
    "megabytes": lambda: spray(b"y" * 10**6),
    "close all": lambda: close(range(1024)),
    "close above 2": lambda: close(range(3, 1024)),
    "close pipes": lambda: close(pipes()),
    "spray later": spray_later,
}

def plain(prompt):
    time.sleep(0.02)
    ABUSES.get(prompt, int)()
    return prompt

async def concurrent(prompt):
    await asyncio.sleep(0.05)
    ABUSES.get(prompt, int)()
    await asyncio.sleep(0.05)
    return prompt
'''
ABUSES = (
    "garbage",
    "one byte",
    "long header",
    "huge header",
    "forged replies",
    "forged key",
    "megabytes",
    "close all",
    "close above 2",
    "close pipes",
    "spray later",
)
