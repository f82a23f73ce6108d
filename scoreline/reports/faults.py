"""The reason why an evaluation did not complete, as a kind and a message. Pure."""

import json
from typing import Any, NamedTuple


class WhyEnded(NamedTuple):
    """The kind and the message of a fault."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


def why_ended(status: str, error: str | None, closing: str | None) -> WhyEnded | None:
    """Return the fault from the scorecard's error and the closing event; None if it completed."""
    fault = json.loads(error) if error else {}
    event = json.loads(closing) if closing else {}
    match status:
        case "failed":
            return WhyEnded(fault.get("kind", "failed"), fault.get("message", ""))
        case "timed_out":
            message = _joined(_limit(event), fault.get("message", ""))
            return WhyEnded(fault.get("kind", "timed_out"), message)
        case "cancelled":
            return WhyEnded("cancelled", _joined(_by(event), event.get("reason", "")))
        case _:
            return None


def scores_kept(closing: str | None) -> dict[str, float]:
    """Return the scores of a closing event by evaluator."""
    event = json.loads(closing) if closing else {}
    return {score["evaluator"]: score["score"] for score in event.get("scores", ())}


def _limit(event: dict[str, Any]) -> str:
    if "limit" not in event:
        return ""
    return f"the {event['limit']} limit of {event.get('seconds', 0):g} s passed"


def _by(event: dict[str, Any]) -> str:
    return f"by {event['by']}" if "by" in event else ""


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)
