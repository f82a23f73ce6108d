"""A user's Python function as a target, imported from where the batch was submitted.

    def answer(prompt): ...                        # the rendered template
    def answer(prompt, case): ...                  # and the case, as a dict
    async def answer(prompt, *, fields, city): ... # all fields, and one of them by its name
    def answer(prompt, **fields): ...              # every field by its name

It returns the answer: a string, a dict with `output` and optionally `usage` and `cost_usd`, or any other
JSON value, which is serialised; None is no answer. An exception with an attribute `transient = True`, a
`TimeoutError` and a `ConnectionError` are retried, all others are not. The function runs in separate
processes (`executor.python_host`), under the interpreter of the options, else that of the submitter
(`BatchSpec.interpreter`), else the executor's.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from domain.batch_spec import Options
from executor.contract import ExecutionEnvironment, Permanent, TargetReply, TargetRequest
from executor.options import OptionModel, read_options
from executor.python_host.host import FunctionCall
from executor.python_host.pool import HostPool
from executor.targets.answers import reply

REPLY_KEYS = frozenset({"output", "usage", "cost_usd"})
_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


def _named(function: str) -> str:
    if not re.fullmatch(f"{_DOTTED}:{_DOTTED}", function):
        raise ValueError("write it as package.module:function")
    return function


FunctionName = Annotated[str, Field(max_length=500), AfterValidator(_named)]
"""`package.module:function`, or a method of something in the module."""


Interpreter = Annotated[str, Field(min_length=1, max_length=4_000, pattern=r"^[^\x00-\x1f]+$")]
"""A path, from the folder of the spec on, or a name on the PATH."""


class PythonTargetOptions(OptionModel):
    """The function, and its interpreter."""

    function: FunctionName
    interpreter: Interpreter | None = None


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """A function that answers."""

    function: str
    pool: HostPool

    async def call(self, request: TargetRequest) -> TargetReply:
        """Call the function with a request."""
        offered = {"case": asdict(request.case), "history": request.history}
        returned = await self.pool.call(FunctionCall(request.prompt, request.fields, offered))
        return self._reply(returned.value, returned.seconds * 1e3)

    async def aclose(self) -> None:
        """End the processes the function runs in."""
        await self.pool.aclose()

    def _reply(self, value: JsonValue, latency_ms: float) -> TargetReply:
        if not isinstance(value, Mapping) or not {"output"} <= value.keys() <= REPLY_KEYS:
            return reply(self._answer(value), latency_ms=latency_ms)
        output, usage, cost = self._answer(value["output"]), value.get("usage"), value.get("cost_usd")
        return reply(output, usage=usage, cost_usd=cost, latency_ms=latency_ms)

    def _answer(self, value: JsonValue) -> JsonValue:
        if value is None:
            raise Permanent("no_answer", f"{self.function} returned None: return the answer, or raise")
        return value


class PythonTargetType:
    """Creates Python targets."""

    def check(self, options: Options) -> None:
        """Refuse what does not name a function; it is imported only where it runs."""
        read_options(PythonTargetOptions, options, of="the python target")

    def make(self, options: Options, environment: ExecutionEnvironment) -> PythonTarget:
        """Make one."""
        read = read_options(PythonTargetOptions, options, of="the python target")
        return PythonTarget(read.function, pool_of(read.function, read.interpreter, environment))


PYTHON = PythonTargetType()


def pool_of(function: str, interpreter: str | None, environment: ExecutionEnvironment) -> HostPool:
    """Make the place where a function of a batch is called."""
    return HostPool(
        function,
        workdir=environment.workdir,
        environ=environment.environ,
        slots=environment.slots,
        interpreter=interpreter or environment.interpreter,
    )
