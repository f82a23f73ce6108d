"""Where the embedded servers keep their files and sockets."""

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.private_files import close_to_others, private_root

# sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL included.
_SOCKET_PATH_LIMIT = 103
_LONGEST_SOCKET_NAME = ".s.PGSQL.5432"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files under one home directory, which only its owner may enter."""

    home: Path

    @classmethod
    def under(cls, root: Path) -> "Layout":
        """The layout below `root`, with its home made private; `root` itself may be shared."""
        home = private_directory(private_root(root).resolve() / "servers")
        close_to_others((*home.glob("*"), *home.glob("valkey/**/*")))
        return cls(home)

    @property
    def users_lock(self) -> Path:
        """Shared by every user, exclusive for a guardian that stops."""
        return self.home / "users.lock"

    @property
    def guardian_lock(self) -> Path:
        """Held by the guardian for as long as it lives."""
        return self.home / "guardian.lock"

    @property
    def status(self) -> Path:
        """The status that the guardian publishes."""
        return self.home / "status.json"

    @property
    def guardian_log(self) -> Path:
        """The guardian's standard output and error."""
        return self.home / "guardian.log"

    def sockets(self) -> Path:
        """The directory of both sockets: the home, or a short one where its path is too long."""
        if _fits(self.home):
            return self.home
        # Recorded, because the next guardian may have another TMPDIR and must find the same one.
        record = self.home / "sockets.path"
        if not record.exists():
            record.write_text(str(_short_directory(self.home)))
        return private_directory(Path(record.read_text()))


def private_directory(path: Path) -> Path:
    """Make `path` a directory that only its owner can enter, or raise."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise EmbeddedServerError(
            "servers",
            f"{path} is not a directory of this user.",
            advice="remove it, or set EVAL_DATA_DIR to another directory.",
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)
    return path


def _fits(directory: Path) -> bool:
    return len(os.fsencode(directory / _LONGEST_SOCKET_NAME)) <= _SOCKET_PATH_LIMIT


def _short_directory(home: Path) -> Path:
    name = f"scoreline-{os.geteuid()}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:12]}"
    in_temporary = Path(tempfile.gettempdir()) / name
    return in_temporary if _fits(in_temporary) else Path("/tmp") / name  # noqa: S108 - made private
