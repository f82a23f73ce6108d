"""Options of targets and evaluators: models that know every key, and say what is wrong in a sentence."""

from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from domain.batch_spec import Options


class OptionModel(BaseModel):
    """What the options of one type look like; nothing unknown is let through."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=OptionModel)


def read_options(model: type[Model], options: Options, *, of: str) -> Model:
    """Read options; raises `ValueError` with a sentence that says which option is wrong, and how."""
    try:
        return model.model_validate(options)
    except ValidationError as error:
        # The values stay out of it: a secret that was written here by mistake is not printed as well.
        errors = error.errors(include_url=False, include_input=False)
        # A name that is not there explains one that is missing.
        first = min(errors, key=lambda each: each["type"] != "extra_forbidden")
        raise ValueError(_sentence(model, first, of)) from None


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """Find what somebody who typed a name may have meant."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.5)), None)


def _sentence(model: type[OptionModel], error: ErrorDetails, of: str) -> str:
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
            said = error["msg"].removeprefix("Value error, ")
            return f"{of}: {where}: {said}" if where else f"{of}: {said}"
        case _:
            return f"{of}: {where}: {error['msg']}"
