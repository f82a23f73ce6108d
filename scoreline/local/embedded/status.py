"""What the guardian tells the users: the addresses of ready servers, or why there are none."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.servers.addresses import Servers


def publish(path: Path, outcome: Servers | EmbeddedServerError, *, guardian: int) -> None:
    """Let every user see the outcome, whole or not at all."""
    told: dict[str, Any] = {"guardian": guardian}
    match outcome:
        case Servers():
            told["servers"] = asdict(outcome)
        case EmbeddedServerError():
            told["error"] = vars(outcome)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(told))
    draft.replace(path)


def read(path: Path) -> Servers | EmbeddedServerError | None:
    """What the guardian told last; None while it has nothing to tell."""
    try:
        told = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    if "servers" in told:
        return Servers(**told["servers"])
    return EmbeddedServerError(**told["error"])
