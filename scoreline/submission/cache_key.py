"""What decides an answer, as a digest: who asks the same again may be given an earlier batch's answer."""

import json
from hashlib import sha256

from pydantic import JsonValue

from eventlog.payloads import Case
from taskqueue.spec import Variant
from taskqueue.template import render

_SEES_ONLY_THE_PROMPT = frozenset({"anthropic", "openai"})


def cache_key(variant: Variant, case: Case, fields: dict[str, JsonValue], repetition: int) -> str:
    """Digest a target, its options, what it is asked, and the repetition."""
    target = variant.target
    asked: list[JsonValue] = [target.type, target.options, render(variant.prompt, fields), repetition]
    if target.type not in _SEES_ONLY_THE_PROMPT:
        # Code is handed the whole case: two cases with one prompt may still have two answers.
        asked.append([case.input, case.expected, case.metadata])
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
