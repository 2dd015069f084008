"""Errors of calls to the API server, with texts that say what to change."""

import re
from http.client import responses
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes.calls import Call


class ApiError(Unavailable):
    """A call failed; `retry_after_s` is how long the server asks us to wait, if it does."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class Absent(ApiError):
    """There is no such object."""


class Conflict(ApiError):
    """The object has changed in the meantime, or exists already."""


class Invalid(ApiError):
    """The object is not valid, for example because a new object has its name."""


class Forbidden(ApiError):
    """We may not do this, or not with this object."""


class Expired(ApiError):
    """The server no longer keeps the rest of the list."""


_KINDS = {403: Forbidden, 404: Absent, 409: Conflict, 410: Expired, 422: Invalid}

_LONGEST_WAIT_S = 3600.0

UNAUTHORIZED = 401


class Answer(NamedTuple):
    """An answer: its HTTP status, the header Retry-After, and its body."""

    status: int
    retry_after: str
    body: bytes


class _Status(BaseModel):
    """The server's message when it refuses."""

    message: str


def refused(call: Call, answer: Answer) -> ApiError:
    """The error for an answer other than the expected one."""
    text = in_its_words(answer.status, answer.body)
    if answer.status == UNAUTHORIZED:
        text += "; the token or certificate has expired, or belongs to another cluster"
    if _KINDS.get(answer.status) is Forbidden:
        text += f"; grant it by RBAC: {call}"
    return _KINDS.get(answer.status, ApiError)(text, _retry_after_s(answer))


def in_its_words(status: int, body: bytes) -> str:
    """The server's message. If something else has answered, such as a proxy, the reason phrase of HTTP."""
    try:
        message = _Status.model_validate_json(body).message
    except ValidationError:
        message = responses.get(status, "without a reason")
    return f"HTTP {status}: {message}"


def _retry_after_s(answer: Answer) -> float | None:
    """The wait in seconds, as API servers write it. Longer waits are cut: the node would stay unchanged for days."""
    return min(float(answer.retry_after), _LONGEST_WAIT_S) if re.fullmatch("[0-9]+", answer.retry_after) else None
