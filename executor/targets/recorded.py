"""A target whose answers are recorded.

They are joined with the cases when the batch is submitted and stored in the log, so an executor never reads
the file. A call means that the case has no recorded answer.
"""

from domain.batch_spec import Options
from executor.contract import ExecutionEnvironment, Permanent, TargetReply, TargetRequest
from executor.options import OptionModel, read_options


class RecordedOptions(OptionModel):
    """The file of the answers."""

    path: str
    output: str | None = None
    """A field of a record, or a dotted path into it."""
    id: str | None = None
    """The field that names the case; without it, records are in the order of the cases."""


class RecordedTarget:
    """The target that has already answered."""

    async def call(self, request: TargetRequest) -> TargetReply:
        """Raise the fault of a missing answer."""
        raise Permanent("no_recorded_answer", f"no answer was recorded for the case {request.case.id!r}")

    async def aclose(self) -> None:
        """Leave nothing behind: there is nothing."""


class RecordedType:
    """Creates targets with recorded answers."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        read_options(RecordedOptions, options, of="the recorded target")

    def make(self, options: Options, environment: ExecutionEnvironment) -> RecordedTarget:  # noqa: ARG002 - needs none
        """Make one."""
        self.check(options)
        return RecordedTarget()


RECORDED = RecordedType()
