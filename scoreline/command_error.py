"""The error of a command that states in one line what is wrong and what to do."""


class CommandError(Exception):
    """An error that the user can correct; its text names the correction."""
