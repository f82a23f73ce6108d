"""The user who runs a command."""

from getpass import getuser


def current_user() -> str:
    """Return the login name of the user who runs this command."""
    try:
        return getuser()
    except (KeyError, OSError):  # an id without a name, as containers have it
        return "operator"
