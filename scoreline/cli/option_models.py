"""Option models: a command takes a dataclass, and each of its fields is a flag.

Typer reads flags from the signature of a function. `filled` gives a command the signature that its option
models describe, so that commands with the same flags share one definition of them.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def filled(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each option model among a command's parameters by one keyword parameter for each field."""
    signature = inspect.signature(command)
    models = {each.name: each.annotation for each in signature.parameters.values() if _is_model(each)}

    @wraps(command)
    def fill(**given: Any) -> None:  # noqa: ANN401 - values of flags
        for name, model in models.items():
            given[name] = model(**{each.name: given.pop(each.name) for each in fields(model)})
        command(**given)

    parameters = list(_expanded(signature))
    fill.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # as inspect reads it
    fill.__annotations__ = {each.name: each.annotation for each in parameters}
    return fill


def _is_model(parameter: inspect.Parameter) -> bool:
    return is_dataclass(parameter.annotation)


def _expanded(signature: inspect.Signature) -> Iterator[inspect.Parameter]:
    for parameter in signature.parameters.values():
        if not _is_model(parameter):
            yield parameter
            continue
        hints = get_type_hints(parameter.annotation, include_extras=True)
        for field in fields(parameter.annotation):
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
