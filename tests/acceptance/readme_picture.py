"""Draw docs/images/batch.svg: a batch half-way and at its end, from the output of the real commands.

python -m tests.acceptance.readme_picture
"""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "batch.svg"
WIDTH = 100
SPEC = """\
name: arithmetic
mode: simulated
limit: 240
targets:
  - {type: simulated, label: small-model, latency: 0.9, jitter: 0.5, pass_rate: 0.72}
  - {type: simulated, label: large-model, latency: 0.9, jitter: 0.5, pass_rate: 0.93}
evaluator: exact
"""


def run(folder: Path, *command: str) -> str:
    """Run a command as on a terminal, and return its output with colours."""
    leader, follower = pty.openpty()
    environ = os.environ | {
        "EVAL_DATA_DIR": str(folder / "data"),
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    process = subprocess.Popen(
        command,
        executable=shutil.which(command[0], path=environ["PATH"]),
        cwd=folder,
        env=environ,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    output = b"".join(_read(leader))
    process.wait()
    return output.decode().replace("\r\n", "\n")


def _read(leader: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(leader, 65_536)
        except OSError:  # the last writer has closed the terminal
            return
        if not piece:
            return
        yield piece


def screens(folder: Path) -> Iterator[tuple[str, str]]:
    """Run a batch, and yield two commands with their output: half-way, and at the end."""
    (folder / "scoreline.yaml").write_text(SPEC, encoding="utf-8")
    accepted = run(folder, "scoreline", "batch", "run", "--workers", "2", "--concurrency", "8", "--detach")
    [batch, *_] = re.findall(r"arithmetic-\w{6}", accepted)
    while not re.search(r"\b[45]\d\.\d%\)", shown := run(folder, "scoreline", "batch", "status", batch)):
        time.sleep(0.3)
    yield f"scoreline batch status {batch}", shown
    while "completed 480 of 480" not in re.sub(r"\x1b\[[\d;]*m", "", shown):
        shown = run(folder, "scoreline", "batch", "status", batch)
        time.sleep(0.5)
    yield f"scoreline batch status {batch}", shown


def main() -> None:
    """Write the picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for command, output in screens(Path(folder)):
            console.print(Text(f"$ {command}", style="bold"))
            head = "\n".join(output.rstrip("\n").split("\n")[:15])
            console.print(Text.from_ansi(head))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(console.export_svg(title="scoreline", unique_id="batch"), encoding="utf-8")


if __name__ == "__main__":
    main()
