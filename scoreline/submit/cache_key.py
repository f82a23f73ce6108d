"""The cache key of an answer: a digest of all that determines it."""

import json
from hashlib import sha256

from pydantic import JsonValue

from domain.batch_spec import Variant
from domain.template import render
from eventlog.payloads import Case

_SEES_ONLY_THE_PROMPT = frozenset({"anthropic", "openai"})
_LIVES_IN_A_FOLDER = frozenset({"python", "command"})


def cache_key(
    variant: Variant, case: Case, fields: dict[str, JsonValue], *, repetition: int, workdir: str
) -> str:
    """Digest a target, its options, what it is asked, and the repetition."""
    target = variant.target
    asked: list[JsonValue] = [target.type, target.options, render(variant.prompt, fields), repetition]
    if target.type not in _SEES_ONLY_THE_PROMPT:
        # Code is handed the whole case: two cases with one prompt may still have two answers.
        asked.append([case.input, case.expected, case.metadata])
    if target.type in _LIVES_IN_A_FOLDER:
        asked.append(workdir)  # the same name in another folder is another program
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
