"""Somebody's Python function as a target, imported from where the batch was submitted.

    def answer(prompt): ...                        # the filled-in template
    def answer(prompt, case): ...                  # and the case, as a dict
    async def answer(prompt, *, fields, city): ... # all fields, and one of them by its name
    def answer(prompt, **fields): ...              # every field by its name

It returns the answer: a string, a dict with `output` and perhaps `usage` and `cost_usd`, or anything else
that is JSON, which is written out. It raises if it has none; an exception with an attribute
`transient = True`, a `TimeoutError` and a `ConnectionError` are worth another try, all others are not.
The function runs in processes of its own (`executor.python_host`).
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from executor.contract import Question, Reply, Surroundings
from executor.options import OptionModel, read_options
from executor.python_host.host import Call
from executor.python_host.pool import HostPool
from executor.targets.answers import reply
from taskqueue.spec import Options

_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


def _named(function: str) -> str:
    if not re.fullmatch(f"{_DOTTED}:{_DOTTED}", function):
        raise ValueError("write it as package.module:function")
    return function


FunctionName = Annotated[str, Field(max_length=500), AfterValidator(_named)]
"""`package.module:function`, or a method of something in the module."""


class PythonOptions(OptionModel):
    """Which function."""

    function: FunctionName


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """A function that answers."""

    pool: HostPool

    async def ask(self, question: Question) -> Reply:
        """Call the function with a question."""
        offered = {"case": asdict(question.case), "history": question.history}
        returned = await self.pool.call(Call(question.prompt, question.fields, offered))
        return _reply(returned.value, returned.seconds * 1e3)

    async def aclose(self) -> None:
        """End the processes the function runs in."""
        await self.pool.aclose()


class PythonType:
    """How functions become targets."""

    def check(self, options: Options) -> None:
        """Refuse what does not name a function; it is imported only where it runs."""
        read_options(PythonOptions, options, of="the python target")

    def make(self, options: Options, surroundings: Surroundings) -> PythonTarget:
        """Make one."""
        function = read_options(PythonOptions, options, of="the python target").function
        return PythonTarget(pool_of(function, surroundings))


PYTHON = PythonType()


def pool_of(function: str, surroundings: Surroundings) -> HostPool:
    """Make the place where a function of a batch is called."""
    workdir, environ, slots = surroundings.workdir, surroundings.environ, surroundings.slots
    return HostPool(function, workdir=workdir, environ=environ, slots=slots)


def _reply(value: JsonValue, latency_ms: float) -> Reply:
    if isinstance(value, Mapping) and "output" in value and value.keys() <= {"output", "usage", "cost_usd"}:
        usage, cost = value.get("usage"), value.get("cost_usd")
        return reply(value["output"], usage=usage, cost_usd=cost, latency_ms=latency_ms)
    return reply(value, latency_ms=latency_ms)
