"""`python -m scoreline.local.observe.guarded PROGRAM …`: a program that ends when its manager is gone."""

import signal
import subprocess
import sys

from scoreline.local.processes import end_with_parent


def main() -> int:
    """Run the program until it ends or this process gets SIGTERM."""
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)  # noqa: S603 - the command line of the caller
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    end_with_parent()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
