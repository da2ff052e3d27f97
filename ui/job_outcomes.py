"""How a job ended, as the options of a command or the arguments of a call tell it."""

from __future__ import annotations

from pydantic import ValidationError

from service.schemas.diagnosis import Outcome
from service.schemas.errors import InvalidRequestError


def outcome_of(exit_code: int | None, signal: str, state: str, sign: str = "") -> Outcome | None:
    """Make the outcome; None where nothing is told of it. `sign` stands before the names of options.

    Raises InvalidRequestError where one is no exit code, signal or state.
    """
    try:
        return Outcome.model_validate({"exit_code": exit_code, "signal": signal, "state": state}).if_given
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        name = f"{sign}{name.replace('_', '-')}" if sign else name
        raise InvalidRequestError(f"{name}: {first['msg'].removeprefix('Value error, ')}.") from error
