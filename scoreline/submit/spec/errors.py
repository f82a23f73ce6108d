"""What can be wrong with a spec."""

from scoreline.problem import Problem


class SpecError(Problem):
    """A key or a flag that makes no sense, and where it stands."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason
