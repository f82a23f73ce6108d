"""The error of a command that states in one line what is wrong and what to do."""


class Problem(Exception):  # noqa: N818 - written for the user, shown without a traceback
    """An error that the user can correct; its text names the correction."""
