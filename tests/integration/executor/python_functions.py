"""Functions of a user, called in real processes."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, TargetRequest
from executor.targets.python import PYTHON, PythonTarget

SECRET = "canary-5c1e"


FUNCTIONS = """
    import asyncio, ctypes, fcntl, os, re, subprocess, sys, threading, time

    def echo(prompt): return prompt.upper()
    def whole(prompt, case, *, fields, city, **rest):
        return [prompt, case["expected"], sorted(fields), city, sorted(rest)]
    def rich(prompt):
        return {"output": "x", "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "cost_usd": 0.25}
    def pid(prompt):
        time.sleep(0.05)
        return os.getpid()
    async def apid(prompt):
        await asyncio.sleep(0.05)
        return os.getpid()
    class Made:
        async def __call__(self, prompt): return prompt
    made = Made()

    class Busy(Exception): transient = True
    def unlucky(prompt): raise Busy("come back")
    def refused(prompt): raise ConnectionRefusedError("connection refused")
    def broken(prompt):
        print("I was here")
        raise KeyError("no such thing")
    def indiscreet(prompt): raise ValueError("bad key " + os.environ["SOME_API_KEY"])
    def shy(prompt):
        if prompt != "first": raise ValueError(prompt)
        print("of the first")
        return prompt
    async def abroken(prompt): raise KeyError("no such thing")

    def leaves(prompt):
        print("so long")
        os._exit(3)
    def exits(prompt): sys.exit("enough")
    async def aexits(prompt): sys.exit("enough")
    def crashes(prompt): ctypes.string_at(0)
    def huge(prompt): return "x" * (1 << 24)
    def odd(prompt): return object()
    def noisy(prompt):
        for _ in range(64): print("y" * (1 << 20))
        return "done"
    def threads(prompt):
        threading.Thread(target=time.sleep, args=(600,)).start()
        return "done"
    def speaks_up(prompt):
        os.write(1, b"\\x00\\x00\\x00\\x02{}")
        return input() if False else sys.stdin.read() + "done"

    def hangs(prompt, *, where):
        open(where, "w").write(f"{os.getpid()} {subprocess.Popen(['sleep', '600']).pid}")
        re.match(r"(a+)+$", "a" * 60 + "b")  # for centuries, and no other thread gets a turn
    def stops_reading(prompt):
        for fd in map(int, os.listdir("/proc/self/fd")):
            try:
                if fd > 2 and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY: os.close(fd)
            except OSError:
                pass
        return prompt
    async def deaf(prompt, *, where):
        if prompt == "quick": return "x"
        if prompt == "slow":
            await asyncio.sleep(0 if os.path.exists(where) else 600)
            return "y"
        open(where, "w").write(str(os.getpid()))
        if prompt == "kind": await asyncio.sleep(600)
        time.sleep(600)

    def same(output, expected): return output == expected
    def part(output, *, case): return len(output) / len(case["expected"])
    def reported(output): return {"score": 0.2, "passed": True, "reason": "because"}
    def only_passed(output): return {"passed": False}
    def silly(output): return "good"
    def nan(output): return float("nan")
"""


def environment(workdir: Path, slots: int = 4) -> ExecutionEnvironment:
    environ = {"PATH": os.environ["PATH"], "EVAL_REDIS_URL": "redis://secret", "SOME_API_KEY": SECRET}
    return ExecutionEnvironment(workdir=str(workdir), slots=slots, environ=environ)


@asynccontextmanager
async def target(workdir: Path, function: str, slots: int = 4) -> AsyncIterator[PythonTarget]:
    made = PYTHON.make({"function": f"functions:{function}"}, environment(workdir, slots))
    try:
        yield made
    finally:
        await made.aclose()


def question(prompt: str = "hello", **fields) -> TargetRequest:
    return TargetRequest("b.00000001", prompt, p.Case(id="c", expected="abcd"), {"city": "Rome", **fields})


async def answer(workdir: Path, function: str, prompt: str = "hello", **fields) -> p.Answer:
    async with target(workdir, function) as made:
        return (await made.call(question(prompt, **fields))).answer


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
