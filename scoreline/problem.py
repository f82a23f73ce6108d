"""The error a command ends with when it can say in one line what is wrong and what to do."""


class Problem(Exception):  # noqa: N818 - written for the user, shown without a traceback
    """Something the user can mend; the text says how."""
