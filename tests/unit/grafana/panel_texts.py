"""The dashboards that are checked in, read panel by panel."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
