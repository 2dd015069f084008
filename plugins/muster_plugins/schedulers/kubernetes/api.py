"""A client for the API server in a pod, with the standard library alone: an agent has no memory for a larger client."""

import json
import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPS_PORT, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from muster.model import Json
from muster_plugins.schedulers.kubernetes.api_error import in_its_words
from muster_plugins.shared.error_words import in_words

MOST_BYTES = 16 << 20
"""Maximum size of an answer. A node has at most a few hundred pods of about ten kilobytes each."""

_TIMEOUT_S = 0.5
"""Timeout for each of connecting, TLS and answering. A probe has one second, and two of these are seldom slow."""

_DONE = (200, 201)
_CONFLICT = 409


class Unanswered(Exception):
    """The API server does not answer; the text says why."""


class Outdated(Unanswered):
    """The object has changed in the meantime."""


class ServiceAccount:
    """A pod's identity at the API server: at the URL `api`, or at the address in the pod's environment.

    `directory` holds the token and the certificates of the server's authority. They are read for each request, because
    they are replaced while the pod lives. Raises Unanswered if something is missing or wrong.
    """

    def __init__(self, api: str | None, directory: Path) -> None:
        self._api = api
        self._directory = directory

    def address(self) -> tuple[str, int]:
        """Host and port of the API server."""
        if self._api is not None:
            parts = urlsplit(self._api)
            return parts.hostname or "", parts.port or HTTPS_PORT
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{what}", "") for what in ("HOST", "PORT"))
        if not host or not port.isdigit():
            raise Unanswered("this is not a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
        return host, int(port)

    @property
    def authority_file(self) -> Path:
        """The path of the certificates."""
        return self._directory / "ca.crt"

    def tls(self) -> ssl.SSLContext:
        """The TLS context with these certificates. Without any, other servers that the host trusts could get it."""
        certificates = self.authority_file.read_bytes().decode("ascii", errors="ignore")
        with suppress(ssl.SSLError):
            if certificates:
                return ssl.create_default_context(cadata=certificates)
        raise Unanswered(f"{self.authority_file} does not hold a certificate")

    def token(self) -> str:
        """The token, one word. Anything else must not get into the text of an error, because it may hold a secret."""
        path = self._directory / "token"
        words = path.read_bytes().split()
        if len(words) != 1 or not words[0].isascii():
            raise Unanswered(f"{path} does not hold a token")
        return words[0].decode()


class ApiServer:
    """The API server, as a service account sees it. Raises Unanswered if there is no answer."""

    def __init__(self, account: ServiceAccount, timeout_s: float = _TIMEOUT_S) -> None:
        self._account = account
        self._timeout_s = timeout_s

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """The answer to GET on the path."""
        return self._answer("GET", f"{path}?{urlencode(query)}", None, {})

    def post(self, path: str, item: Json) -> bytes:
        """Creates an object; returns it as the server has stored or answered it."""
        return self._answer("POST", path, json.dumps(item), {"Content-Type": "application/json"})

    def patch(self, path: str, change: Json, manager: str) -> None:
        """Changes an object by a merge patch, as this field manager."""
        headers = {"Content-Type": "application/merge-patch+json"}
        self._answer("PATCH", f"{path}?{urlencode({'fieldManager': manager})}", json.dumps(change), headers)

    def _answer(self, method: str, target: str, body: str | None, headers: Mapping[str, str]) -> bytes:
        try:
            status, answer = self._ask(method, target, body, headers)
        except TimeoutError:
            raise Unanswered(f"the API server did not answer within {self._timeout_s:g} s") from None
        except (OSError, HTTPException) as error:
            raise Unanswered(f"no answer from the API server: {in_words(error)}") from None
        if len(answer) > MOST_BYTES:
            raise Unanswered(f"an answer of more than {MOST_BYTES} bytes")
        if status not in _DONE:
            raise (Outdated if status == _CONFLICT else Unanswered)(in_its_words(status, answer))
        return answer

    def _ask(self, method: str, target: str, body: str | None, more: Mapping[str, str]) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._account.token()}", "Accept": "application/json", **more}
        connection = self._connection()
        try:
            connection.request(method, target, body, headers=headers)
            response = connection.getresponse()
            return response.status, response.read(MOST_BYTES + 1)
        finally:
            connection.close()

    def _connection(self) -> HTTPSConnection:
        host, port = self._account.address()
        return HTTPSConnection(host, port, timeout=self._timeout_s, context=self._account.tls())
