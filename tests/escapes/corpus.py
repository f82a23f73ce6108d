"""All programs of the escape corpus, in the order of the table."""

from tests.escapes.channels import (
    ENVIRONMENT_PROGRAMS,
    EXIT_PROGRAMS,
    REPORT_PROGRAMS,
    TERMINAL_PROGRAMS,
)
from tests.escapes.isolation import (
    ABI_PROGRAMS,
    KEYRING_PROGRAMS,
    NAMESPACE_PROGRAMS,
    SIGNAL_PROGRAMS,
    TRACING_PROGRAMS,
)
from tests.escapes.resources import (
    DISK_PROGRAMS,
    MEMORY_PROGRAMS,
    OUTPUT_PROGRAMS,
    PROCESS_PROGRAMS,
    TIME_PROGRAMS,
)
from tests.escapes.surroundings import (
    DEVICE_PROGRAMS,
    FILE_PROGRAMS,
    KERNEL_PROGRAMS,
    NETWORK_PROGRAMS,
)

_WAITING = frozenset(
    {
        "empty files without number",
        "links, directories and long names without number",
        "extended attributes as a store",
    }
)
"""Programs that the sandbox does not contain yet."""

_ALL = (
    *MEMORY_PROGRAMS,
    *DISK_PROGRAMS,
    *PROCESS_PROGRAMS,
    *TIME_PROGRAMS,
    *OUTPUT_PROGRAMS,
    *NETWORK_PROGRAMS,
    *FILE_PROGRAMS,
    *DEVICE_PROGRAMS,
    *KERNEL_PROGRAMS,
    *NAMESPACE_PROGRAMS,
    *KEYRING_PROGRAMS,
    *SIGNAL_PROGRAMS,
    *TRACING_PROGRAMS,
    *ABI_PROGRAMS,
    *ENVIRONMENT_PROGRAMS,
    *REPORT_PROGRAMS,
    *TERMINAL_PROGRAMS,
    *EXIT_PROGRAMS,
)

CORPUS = tuple(program for program in _ALL if program.name not in _WAITING)
