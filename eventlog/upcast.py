"""Older shapes of an event, lifted one version at a time to the one this code reads.

Version 1 is what executors sent before attempts had owners: `timestamp` in seconds, no `source`, and
payloads of loose names (`executor_id`, `container_id`, `output` beside `exit_code`). Version 2 knew no
variants, repetitions or groups; what it lacks has a default. Stored events keep
the bytes they came in; lifting happens whenever they are read. `tests/histories` holds a golden file
for each version, for ever.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from eventlog.payloads import JsonObject


class CannotUpcast(ValueError):  # noqa: N818 - reads as the sentence it is
    """An event claims an old version but lacks what that version had."""


def to_current(old: JsonObject, *, current: int) -> JsonObject:
    """Lift an event of any known older version to the current one."""
    event = old
    for version in range(int(old["schema_version"]), current):
        try:
            event = {**_LIFTS[version](event), "schema_version": version + 1}
        except (KeyError, TypeError, AttributeError) as error:
            raise CannotUpcast(f"version {version} of {old.get('type')!r} lacks {error}") from error
        except (ValueError, OverflowError, OSError) as error:  # a time that no calendar has
            raise CannotUpcast(f"version {version} of {old.get('type')!r}: {error}") from error
    return event


def _from_version_1(old: JsonObject) -> JsonObject:
    rest = {k: v for k, v in old.items() if k not in {"timestamp", "data"}}
    return {
        "source": "executor",
        **rest,
        "occurred_at": datetime.fromtimestamp(old["timestamp"], UTC).isoformat(),
        "data": _PAYLOADS_OF_1.get(old["type"], _unchanged)(old["data"], old),
    }


def _unchanged(data: JsonObject, _event: JsonObject) -> JsonObject:
    return data


def _queued(data: JsonObject, event: JsonObject) -> JsonObject:
    return {"case": {"id": data.get("case_id", event["evaluation_id"])}}


def _provisioning(data: JsonObject, _event: JsonObject) -> JsonObject:
    return {"executor": data["executor_id"], "nonce": f"v1:{data['executor_id']}"}


def _running(data: JsonObject, _event: JsonObject) -> JsonObject:
    return {"target": "container", "process": data["container_id"]}


def _completed(data: JsonObject, _event: JsonObject) -> JsonObject:
    verdict = "passed" if data["exit_code"] == 0 else "failed"
    return {"verdict": verdict, "exit_code": data["exit_code"], "output": data["output"]}


def _failed(data: JsonObject, _event: JsonObject) -> JsonObject:
    return {"error": {"kind": "error", "message": data["error"]}}


_PAYLOADS_OF_1: dict[str, Callable[[JsonObject, JsonObject], JsonObject]] = {
    "queued": _queued,
    "provisioning": _provisioning,
    "running": _running,
    "completed": _completed,
    "failed": _failed,
}


def _from_version_2(old: JsonObject) -> JsonObject:
    return old


_LIFTS: dict[int, Callable[[JsonObject], JsonObject]] = {1: _from_version_1, 2: _from_version_2}
