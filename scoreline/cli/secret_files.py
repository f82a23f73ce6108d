"""Secrets from files: `NAME_FILE` names a file whose content becomes `NAME`.

A container's definition, process list and inspection then show the path of a secret, never its value.
Only names of secrets are read: other programs have `_FILE` variables of their own.
"""

from collections.abc import MutableMapping
from pathlib import Path

from scoreline.command_error import CommandError

SUFFIX = "_FILE"
URLS = ("EVAL_REDIS_URL", "EVAL_POSTGRES_URL")
KEY = "_API_KEY"
LONGEST = 65_536


class SecretFileError(CommandError):
    """A secret can't be read from its file; names the file and the reason, never the content."""

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"{variable} {problem}.")
        self.variable = variable


def open_secret_files(environ: MutableMapping[str, str]) -> None:
    """Replace each `NAME_FILE` by `NAME` with the content of the file; an empty `NAME_FILE` is removed."""
    for variable in [name for name in environ if names_secret_file(name)]:
        place = environ.pop(variable)
        name = variable.removesuffix(SUFFIX)
        if not place:
            continue
        if environ.get(name):
            raise SecretFileError(variable, f"and {name} are both set: keep one of them")
        environ[name] = _read(variable, Path(place))


def names_secret_file(variable: str) -> bool:
    """Whether a variable names the file of a secret."""
    name = variable.removesuffix(SUFFIX)
    return name != variable and (name in URLS or name.endswith(KEY))


def _read(variable: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            secret = file.read(LONGEST + 1)
        text = secret.decode().strip()
    except OSError as error:
        raise SecretFileError(variable, f"can't be read from {path} ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SecretFileError(variable, f"names {path}, which is not text") from None
    if not text:
        raise SecretFileError(variable, f"names {path}, which is empty")
    if len(secret) > LONGEST or "\n" in text or "\0" in text:
        raise SecretFileError(variable, f"names {path}, which holds more than one line")
    return text
