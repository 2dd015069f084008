"""Questions to the API server, with nothing but the standard library: an agent at rest has no memory for a client."""

import os
import ssl
from collections.abc import Mapping
from http.client import HTTPS_PORT, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, ValidationError

MOST_BYTES = 16 << 20
"""Of an answer. A node has at most some hundred pods, of some ten kilobytes each."""

_TIMEOUT_S = 0.5
"""For each of connecting, shaking hands and answering. A probe has a second, and seldom are two of these slow."""


class Unanswered(Exception):
    """The API server does not tell; the text says why."""


class _Status(BaseModel):
    """What the API server says when it does not do what it was asked for."""

    message: str


class ApiServer:
    """The API server at the URL `api`, or where the environment of a pod says that it is.

    `service_account` is the directory with the token and the certificates of the server's authority. Both are read for
    each question, since they are replaced while the pod lives.
    """

    def __init__(self, api: str | None, service_account: Path) -> None:
        self._api = api
        self._service_account = service_account

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """The body of an answer; Unanswered when there is none, for whatever reason."""
        try:
            status, body = self._ask(f"{path}?{urlencode(query)}")
        except TimeoutError:
            raise Unanswered(f"the API server did not answer within {_TIMEOUT_S:g} s") from None
        except (OSError, HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from None
        if len(body) > MOST_BYTES:
            raise Unanswered(f"an answer of more than {MOST_BYTES} bytes")
        if status != 200:
            raise Unanswered(f"HTTP {status}: {_message(body)}")
        return body

    def _ask(self, target: str) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._token()}", "Accept": "application/json"}
        connection = self._connection()
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            return response.status, response.read(MOST_BYTES + 1)
        finally:
            connection.close()

    def _connection(self) -> HTTPSConnection:
        host, port = self._address()
        context = ssl.create_default_context(cadata=self._authority())
        return HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)

    def _address(self) -> tuple[str, int]:
        if self._api is not None:
            parts = urlsplit(self._api)
            return parts.hostname or "", parts.port or HTTPS_PORT
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{what}", "") for what in ("HOST", "PORT"))
        if not host or not port.isdigit():
            raise Unanswered(
                "this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not say who to ask"
            )
        return host, int(port)

    def _authority(self) -> str:
        """The certificates. Without any, everybody whom the host trusts would be given the token."""
        path = self._service_account / "ca.crt"
        certificates = path.read_bytes().decode("ascii", errors="ignore")
        if not certificates:
            raise Unanswered(f"{path} does not hold a certificate")
        return certificates

    def _token(self) -> str:
        """One word; anything else must not get into an error's text, as it may still hold a secret."""
        path = self._service_account / "token"
        words = path.read_bytes().split()
        if len(words) != 1 or not words[0].isascii():
            raise Unanswered(f"{path} does not hold a token")
        return words[0].decode()


def _message(body: bytes) -> str:
    try:
        return _Status.model_validate_json(body).message
    except ValidationError:
        return "without a reason"
