"""Why a call to the API server has come to nothing, in words that say what to change."""

import re
from http.client import responses
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes.calls import Call


class ApiError(Unavailable):
    """A call has come to nothing; `retry_after_s` is how long the server wants to be left alone, if it says so."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class Absent(ApiError):
    """There is no such object."""


class Conflict(ApiError):
    """The object has changed in the meantime, or is there already."""


class Invalid(ApiError):
    """The object cannot be made so, for example because another one has come under its name."""


class Forbidden(ApiError):
    """We may not do this, or not with this object."""


class Expired(ApiError):
    """The rest of a list is not kept any more."""


_KINDS = {403: Forbidden, 404: Absent, 409: Conflict, 410: Expired, 422: Invalid}

_LONGEST_WAIT_S = 3600.0

UNAUTHORIZED = 401


class Answer(NamedTuple):
    """An answer: its HTTP status, the header Retry-After, and its body."""

    status: int
    retry_after: str
    body: bytes


class _Status(BaseModel):
    """What the server says when it does not do what it was asked for."""

    message: str


def refused(call: Call, answer: Answer) -> ApiError:
    """The error that an answer other than the wanted one is."""
    text = in_its_words(answer.status, answer.body)
    if answer.status == UNAUTHORIZED:
        text += "; the token or certificate has expired, or is of another cluster"
    if _KINDS.get(answer.status) is Forbidden:
        text += f"; grant it by RBAC: {call}"
    return _KINDS.get(answer.status, ApiError)(text, _retry_after_s(answer))


def in_its_words(status: int, body: bytes) -> str:
    """What the server says. Where something else has answered, such as a proxy, the words of HTTP have to do."""
    try:
        message = _Status.model_validate_json(body).message
    except ValidationError:
        message = responses.get(status, "without a reason")
    return f"HTTP {status}: {message}"


def _retry_after_s(answer: Answer) -> float | None:
    """API servers say it in seconds. Who asks for days is mistaken, and the node would stay as it is for as long."""
    return min(float(answer.retry_after), _LONGEST_WAIT_S) if re.fullmatch("[0-9]+", answer.retry_after) else None
