"""Where tables are drawn."""

import os
import sys

from rich.console import Console

PIPED_WIDTH = 160
"""Columns where nobody's terminal sets a limit."""


def screen() -> Console:
    """Draw on standard output, as wide as the terminal; where there is none, ids are not cut."""
    free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPED_WIDTH if free else None, highlight=False, markup=False)
