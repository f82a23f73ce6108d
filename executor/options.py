"""Options of targets and evaluators: models with every key, and error messages for users."""

from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from domain.batch_spec import Options


class OptionModel(BaseModel):
    """The options of one type; unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


Model = TypeVar("Model", bound=OptionModel)


def read_options(model: type[Model], options: Options, *, of: str) -> Model:
    """Validate options; raises `ValueError` with a message that names the wrong option."""
    try:
        return model.model_validate(options)
    except ValidationError as error:
        # Without the values: a secret that was written here by mistake must not be printed.
        errors = error.errors(include_url=False, include_input=False)
        # An unknown name explains a missing one: report it first.
        first = min(errors, key=lambda each: each["type"] != "extra_forbidden")
        raise ValueError(_message(model, first, of)) from None


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name closest to a misspelt one."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.5)), None)


def _message(model: type[OptionModel], error: ErrorDetails, of: str) -> str:
    where = ".".join(map(str, error["loc"]))
    known = tuple(field.alias or name for name, field in model.model_fields.items())
    match error["type"]:
        case "extra_forbidden" if where not in known:
            guess = nearest(where, known)
            hint = f"did you mean {guess!r}?" if guess else f"known: {', '.join(known) or 'none'}"
            return f"{of} has no option {where!r}; {hint}"
        case "missing":
            return f"{of} needs the option {where!r}"
        case "value_error":
            message = error["msg"].removeprefix("Value error, ")
            return f"{of}: {where}: {message}" if where else f"{of}: {message}"
        case _:
            return f"{of}: {where}: {error['msg']}"
