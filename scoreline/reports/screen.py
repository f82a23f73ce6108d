"""The console on which reports are printed."""

import os
import sys

from rich.console import Console

PIPED_WIDTH = 160
"""The width, in columns, where standard output is no terminal."""


def screen() -> Console:
    """Return a console on standard output, as wide as the terminal, or `PIPED_WIDTH` without one."""
    is_piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPED_WIDTH if is_piped else None, highlight=False, markup=False)
