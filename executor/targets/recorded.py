"""A target whose answers are known before it is asked.

They are joined with the cases where the batch is submitted and travel in the log, so an executor never
reads the file. Whoever asks holds a case for which nothing was recorded.
"""

from domain.batch_spec import Options
from executor.contract import ExecutionEnvironment, Permanent, TargetReply, TargetRequest
from executor.options import OptionModel, read_options


class RecordedOptions(OptionModel):
    """Where the answers are."""

    path: str
    output: str | None = None
    """A field of a record, or a dotted path into it."""
    id: str | None = None
    """The field that names the case; without it, records are in the order of the cases."""


class RecordedTarget:
    """The target that has already answered."""

    async def call(self, request: TargetRequest) -> TargetReply:
        """Say that there is no answer."""
        raise Permanent("no_recorded_answer", f"no answer was recorded for the case {request.case.id!r}")

    async def aclose(self) -> None:
        """Leave nothing behind: there is nothing."""


class RecordedType:
    """How targets with recorded answers are made."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        read_options(RecordedOptions, options, of="the recorded target")

    def make(self, options: Options, environment: ExecutionEnvironment) -> RecordedTarget:  # noqa: ARG002 - needs none
        """Make one."""
        self.check(options)
        return RecordedTarget()


RECORDED = RecordedType()
