"""What can be wrong with a spec."""

from scoreline.command_error import CommandError


class SpecError(CommandError):
    """A key or a flag that makes no sense, and where it stands."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason
