"""The status file of the guardian: the URLs of ready servers, or the error."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.servers.addresses import Servers


def publish(path: Path, outcome: Servers | EmbeddedServerError, *, guardian: int) -> None:
    """Let every user see the outcome, whole or not at all."""
    document: dict[str, Any] = {"guardian": guardian}
    match outcome:
        case Servers():
            document["servers"] = asdict(outcome)
        case EmbeddedServerError():
            document["error"] = vars(outcome)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(document))
    draft.replace(path)


def read(path: Path) -> Servers | EmbeddedServerError | None:
    """Read the published status; None before there is one."""
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    if "servers" in document:
        return Servers(**document["servers"])
    return EmbeddedServerError(**document["error"])
