"""The keys of a spec, and the check of the value under each."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from scoreline.submit.spec import values as v
from scoreline.submit.spec.errors import SpecError

Place = Callable[..., str]
"""Names the place of a key: a line of a file, or a flag."""

WEEK = 7 * 86_400.0

KEYS: Mapping[str, v.Check] = {
    "name": v.name,
    "project": v.name,
    "dataset": v.dataset,
    "prompts": v.many(v.text),
    "targets": v.many(v.described),
    "evaluators": v.many(v.described),
    "repetitions": v.whole(1, 10_000),
    "retries": v.whole(0, 100),
    "timeout": v.duration(WEEK),
    "priority": v.whole(1, 100),
    "tags": v.many(v.name),
    "tag": v.many(v.name),
    "limit": v.whole(1, 10**9),
    "cache": v.switch,
    "batch_api": v.batch_api,
    "max_duration": v.duration(52 * WEEK),
    "mode": v.one_of("simulated"),
    "min_pass_rate": v.share,
    "limits": v.mapping,
    "accounts": v.mapping,
    "max_concurrency": v.whole(1, 1_000_000),
    "max_cost": v.dollars,
    "max_tokens": v.whole(1, 10**15),
    "fail_fast_after": v.whole(0, 1_000_000),
    "requires": v.many(v.label),
}
SINGULAR = {"prompt": "prompts", "target": "targets", "evaluator": "evaluators"}
"""Another name for the same key, where there is but one."""

DATASET_KEYS: Mapping[str, v.Check] = dict.fromkeys(
    ("path", "name", "records", "id", "input", "expected"), v.text
)
LIMIT_KEYS: Mapping[str, v.Check] = {
    "rpm": v.number(1e9),
    "tpm": v.number(1e12),
    "max_concurrency": v.whole(1, 1_000_000),
    "delay": v.duration(86_400.0, may_be_nothing=True),
}
_FLAGS_ALONE = ("workers", "distributed", "local", "detach", "json")


def read_keys(values: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Validate the values of all keys; raises `SpecError` for the first invalid one."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        meant = SINGULAR.get(key, key)
        if meant in found:
            raise SpecError(place(key), f"`{key}` and `{meant}` are the same key: give one of them")
        if meant not in KEYS:
            raise SpecError(place(key), unknown(key, [*KEYS, *SINGULAR]))
        found[meant] = _checked(KEYS[meant], value, key, place(key))
    if "dataset" in found:
        found["dataset"] = _dataset(found["dataset"], place)
    if "limits" in found:
        found["limits"] = _within(found["limits"], "limits", LIMIT_KEYS, place)
    if "accounts" in found:
        found["accounts"] = {
            name: read_limits(limits, f"accounts.{name}", place("accounts", name))
            for name, limits in found["accounts"].items()
        }
    return found


def read_limits(values: Any, key: str, where: str) -> dict[str, Any]:  # noqa: ANN401 - as it was written
    """Check the rate limits of one target, evaluator or account; raises `SpecError`."""
    limits = _checked(v.mapping, values, key, where)
    return _within(limits, key, LIMIT_KEYS, lambda *_: where)


def unknown(key: str, known: Iterable[str]) -> str:
    """Describe an unknown key, and the closest match."""
    if key in _FLAGS_ALONE:
        return f"`{key}` is how to run a batch, not part of it: it is a flag only, --{key}"
    near = get_close_matches(key, list(known), n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known))}"
    return f"there is no key `{key}`; {hint}"


def _dataset(values: Mapping[str, Any], place: Place) -> dict[str, str]:
    found = _within(values, "dataset", DATASET_KEYS, place)
    if ("path" in found) == ("name" in found):
        raise SpecError(
            place("dataset"), "a `dataset` has either a `path` or the `name` of an imported one"
        )
    if "name" in found and len(found) > 1:
        other = next(key for key in found if key != "name")
        raise SpecError(
            place("dataset", other), f"`{other}` is for files: an imported dataset has its columns"
        )
    return found


def _within(
    values: Mapping[str, Any], around: str, known: Mapping[str, v.Check], place: Place
) -> dict[str, Any]:
    """Check the keys within a key."""
    for key in values:
        if key not in known:
            raise SpecError(place(around, key), unknown(key, known))
    return {
        key: _checked(known[key], value, f"{around}.{key}", place(around, key))
        for key, value in values.items()
    }


def _checked(check: v.Check, value: Any, key: str, place: str) -> Any:  # noqa: ANN401 - what the key means
    try:
        return check(value)
    except ValueError as error:
        raise SpecError(place, f"`{key}` {error}") from None
