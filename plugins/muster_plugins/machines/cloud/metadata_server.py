"""Asks the metadata server of a cloud, which every machine of the cloud reaches at the same link-local address.

The whole conversation has one deadline. The timeouts of `http.client` are for single reads, so a server that sends a
byte now and then could hold the agent up for ever. No proxy is used: the address means this machine's own server.
"""

import io
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple

from muster.machine_type import is_machine_type
from muster_plugins.machines.cloud.answers import Answers
from muster_plugins.machines.cloud.clouds import Cloud, MetadataRequest
from muster_plugins.shared.error_words import in_words

ADDRESS = ("169.254.169.254", 80)

WITHIN_S = 1.0
"""Deadline for the whole conversation. A metadata server answers within milliseconds."""

_MOST_BYTES = 1 << 16
"""Maximum size of an answer. A machine type has at most 63 characters, a list of planned events some hundreds."""

_OK = 200
_STRANGE = "an answer that no metadata server gives"


class NoMetadata(Exception):
    """The server does not answer, or not as a metadata server does; the text says why."""


class _Answer(NamedTuple):
    status: int
    text: str


def ask_machine_type(cloud: Cloud, address: tuple[str, int] = ADDRESS, within_s: float = WITHIN_S) -> str:
    """The machine type by the cloud's metadata server. Raises NoMetadata."""
    (answer,) = _ask_all(cloud, (cloud.machine_type,), address, within_s)
    if answer.status != _OK:
        raise NoMetadata(f"HTTP status {answer.status}")
    name = answer.text.rpartition("/")[2]  # Google Cloud says projects/NUMBER/machineTypes/NAME
    if not is_machine_type(name):
        raise NoMetadata(f"{answer.text[:80]!r} is not a machine type")
    return name


def ask(
    cloud: Cloud, requests: Sequence[MetadataRequest], address: tuple[str, int] = ADDRESS, within_s: float = WITHIN_S
) -> Answers:
    """The answers of the cloud's metadata server. A status other than 200 means that it has no text for a request.

    Raises NoMetadata if it does not answer every request in time.
    """
    answers = _ask_all(cloud, requests, address, within_s)
    return [answer.text if answer.status == _OK else None for answer in answers]


def _ask_all(
    cloud: Cloud, requests: Sequence[MetadataRequest], address: tuple[str, int], within_s: float
) -> list[_Answer]:
    deadline = time.monotonic() + within_s
    headers = {}
    if cloud.session is not None:
        token = _ask(cloud.session, {}, address, deadline)
        if token.status != _OK:
            raise NoMetadata(f"HTTP status {token.status}")
        if not token.text.isprintable():  # it goes into a header
            raise NoMetadata(_STRANGE)
        headers[cloud.session_header] = token.text
    return [_ask(request, headers, address, deadline) for request in requests]


def _ask(request: MetadataRequest, more: dict[str, str], address: tuple[str, int], deadline: float) -> _Answer:
    try:
        with socket.create_connection(address, timeout=_left(deadline)) as connection:
            connection.sendall(_written(request, more, address[0]))
            return _answer(_Hurried(connection, deadline), request.method)
    except TimeoutError:
        raise NoMetadata("no answer in time") from None
    except (OSError, HTTPException, ValueError) as error:
        raise NoMetadata(in_words(error)) from None


def _written(request: MetadataRequest, more: dict[str, str], host: str) -> bytes:
    headers = {"Host": host, "Connection": "close", "Content-Length": "0", **request.headers, **more}
    lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def _answer(incoming: "_Hurried", method: str) -> _Answer:
    response = HTTPResponse(_Readable(incoming), method=method)  # type: ignore[arg-type]  # it only calls makefile
    response.begin()
    body = response.read(_MOST_BYTES + 1)
    if len(body) > _MOST_BYTES:
        raise NoMetadata(_STRANGE)
    return _Answer(response.status, body.decode("utf-8").strip())  # raises ValueError


@dataclass(frozen=True, slots=True)
class _Readable:
    """The part of a socket that HTTPResponse uses."""

    incoming: io.RawIOBase

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self.incoming)


class _Hurried(io.RawIOBase):
    """What comes over a connection until the deadline; TimeoutError after it."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(_left(self._deadline))
        return self._connection.recv_into(buffer)


def _left(deadline: float) -> float:
    """Seconds until the deadline. Raises TimeoutError if there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
