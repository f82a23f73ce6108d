"""Everything that is fuzzed."""

from tests.fuzz.file_targets import FILE_TARGETS
from tests.fuzz.reply_targets import REPLY_TARGETS
from tests.fuzz.target import FuzzTarget
from tests.fuzz.text_targets import TEXT_TARGETS

TARGETS: tuple[FuzzTarget, ...] = (*FILE_TARGETS, *REPLY_TARGETS, *TEXT_TARGETS)
