"""Scoreline: command line, submission, reports, local runs, observability and the simulated provider."""

import os
import sys

from scoreline.safe_path import demote_user_folders

demote_user_folders(sys.path, sys.argv, os.environ)  # before anything else is imported

from scoreline.startup_interrupt import STARTUP_INTERRUPT  # noqa: E402 - from a path that is safe

STARTUP_INTERRUPT.install(sys.argv)  # importing takes long enough to be interrupted
