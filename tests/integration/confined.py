"""Apply the confinement of a container engine to this process, then run some code.

python -m tests.integration.confined PROFILE CODE

An unprivileged user, no new privileges, and a seccomp profile in the engines' JSON format, loaded with
libseccomp, as the engines do. Root first switches to an unprivileged user without capabilities. That user
may be unable to read this folder, so the code gets its modules imported already: `probe`, `libc`.
"""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

from executor.sandbox.probe import probe

LIBRARY = "libseccomp.so.2"
UID = 10_001
_ALLOW, _ERRNO, _EQUAL = 0x7FFF0000, 0x00050000, 4


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint), ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64), ("mask", ctypes.c_uint64),
    )  # fmt: skip


def load(profile: dict[str, Any]) -> None:
    """Load a profile for this process and its children; calls unknown here are left out."""
    library = ctypes.CDLL(LIBRARY, use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ERRNO | profile["defaultErrnoRet"])))
    for rule in profile["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ALLOW"
        for name in rule["names"]:
            _allow(library, context, name, rule.get("args", []))
    assert library.seccomp_load(context) == 0


def _allow(library: ctypes.CDLL, context: ctypes.c_void_p, name: str, wanted: list[dict[str, Any]]) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number < 0:
        return
    assert all(each["op"] == "SCMP_CMP_EQ" for each in wanted)
    found = [_Comparison(each["index"], _EQUAL, each["value"], 0) for each in wanted]
    array = (_Comparison * len(found))(*found)
    done = library.seccomp_rule_add_array(context, ctypes.c_uint32(_ALLOW), number, len(found), array)
    assert done == 0, name


def give_up_root() -> None:
    """Switch to an unprivileged user irrevocably; capabilities are dropped with it."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(UID, UID, UID)
        os.setresuid(UID, UID, UID)


if __name__ == "__main__":
    confinement = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    known = {"probe": probe, "libc": ctypes.CDLL(None, use_errno=True), "ctypes": ctypes}
    sys.base_prefix = "/usr"  # as in the image; root's own Python may be unreadable to other users
    give_up_root()
    load(confinement)
    exec(sys.argv[2], known)
