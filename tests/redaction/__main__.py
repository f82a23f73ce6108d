"""Redaction, tried many times: `python -m tests.redaction --trials 20000 [--seed 1] [--json]`.

Prints how many texts of each encoding, position, cut and place were tried, how many leaked, and what
redaction costs: nanoseconds for a character of a large text, microseconds for a small event.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from time import process_time
from typing import Any

from eventlog import payloads as p
from eventlog.codec import encode, make_event
from eventlog.redaction import Redactor
from tests.redaction.trial import ALPHABETS, NOW, Trial, draw, knowing, leak

ASPECTS = ("encoding", "position", "cut", "place")


def statistics(trials: int, seed: int) -> dict[str, object]:
    """Try that many texts, and count them by each aspect."""
    tried = {aspect: Counter[str]() for aspect in ASPECTS}
    leaked = {aspect: Counter[str]() for aspect in ASPECTS}
    examples: list[Trial] = []
    for number in range(trials):
        trial = draw(Random(f"{seed}.{number}"))
        is_leak = leak(trial) is not None
        examples += [trial] if is_leak else []
        for aspect in ASPECTS:
            tried[aspect][getattr(trial, aspect)] += 1
            leaked[aspect][getattr(trial, aspect)] += is_leak
    return {
        "trials": trials,
        "seed": seed,
        "leaks": len(examples),
        "by": {
            aspect: {
                name: {"tried": count, "leaks": leaked[aspect][name]}
                for name, count in sorted(tried[aspect].items())
            }
            for aspect in ASPECTS
        },
        "examples": [repr(each) for each in examples[:5]],
    }


def costs() -> dict[str, float]:
    """Measure redaction of five secrets in a large text, and in a small event beside its encoding."""
    random = Random(1)
    secrets = ["sk-" + "".join(random.choices(ALPHABETS["key"], k=48)) for _ in range(5)]
    large = " ".join(random.choices(("the", "answer", "is", "42", "because"), k=250_000))[:1_000_000]
    with knowing(*secrets):
        small = _seconds(_small_event, 3_000)
    with knowing():
        without = _seconds(_small_event, 3_000)
    redactor = Redactor(frozenset(secrets))
    megabyte = _seconds(lambda: redactor.redact(large), 5)
    return {
        "megabyte_ms": round(megabyte * 1e3, 2),
        "small_event_us": round((small - without) * 1e6, 1),
        "small_event_ratio": round(small / without, 2),
    }


def _small_event() -> None:
    answer = p.Responded("The answer is 42, because six times seven is forty-two. " * 4)
    encode(
        make_event(
            answer, evaluation_id="e", batch_id="b", attempt=1, sequence=2, occurred_at=NOW, source="s"
        )
    )


def _seconds(call, times: int) -> float:
    call()
    best = float("inf")
    for _ in range(5):
        started = process_time()
        for _ in range(times // 5 or 1):
            call()
        best = min(best, (process_time() - started) / (times // 5 or 1))
    return best


def table(found: dict[str, Any]) -> Iterator[str]:
    """Lay the counts out for people."""
    yield f"{found['trials']:,} texts, {found['leaks']} leaks (seed {found['seed']})"
    for aspect, counts in found["by"].items():
        yield f"\n{aspect:<22}{'tried':>8}{'leaks':>8}"
        yield from (f"  {name:<20}{each['tried']:>8,}{each['leaks']:>8,}" for name, each in counts.items())
    cost = found["costs"]
    yield (
        f"\n1 MB: {cost['megabyte_ms']} ms; a small event: {cost['small_event_us']} µs more, "
        f"{cost['small_event_ratio']} times as long as without (5 secrets)"
    )
    yield from found["examples"]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser("python -m tests.redaction", description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    given = parser.parse_args()
    found = {**statistics(given.trials, given.seed), "costs": costs()}
    sys.stdout.write((json.dumps(found) if given.json else "\n".join(table(found))) + "\n")
    return 1 if found["leaks"] else 0


if __name__ == "__main__":
    sys.exit(main())
