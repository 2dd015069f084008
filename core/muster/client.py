"""The client of the HTTP API for the command line."""

import gzip
import json
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLError
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from muster.errors import Refused, SettingsError, Unavailable
from muster.terminal import in_one_line

TIMEOUT_S = 15.0
PAGE = 1_000

_SENT_AS_IT_IS = 16 << 10
"""Longer bodies are compressed."""

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 (nothing is bound)
"""The address of a coordinator on this host that listens on every address."""

_ABOUT_TLS = (
    "write http:// if it speaks no TLS, or name the file with the authority of its certificate in SSL_CERT_FILE"
)

AS_TYPED = "surrogateescape"
"""How bytes of an argument that are no UTF-8 are sent: as they are. The coordinator knows nothing of that name."""

T = TypeVar("T")


def local_url(listen: str) -> str:
    """The URL of the coordinator on this host that listens at `listen`."""
    host, _, port = listen.rpartition(":")
    return f"http://{_EVERY_ADDRESS.get(host, host)}:{port}"


def page_url(listen: str) -> str:
    """The page of the coordinator on this host that listens at `listen`."""
    return f"{local_url(listen)}/"


class Client:
    """A client of one coordinator. Raises Refused for its errors, Unavailable if it cannot be reached or answer."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = _parts(url)
        if parts.scheme not in ("http", "https") or not _is_host_and_port(parts):
            raise SettingsError("--url: must be the URL of a coordinator, for example http://127.0.0.1:8787")
        if "@" in parts.netloc:
            raise SettingsError("--url: contains a user name; remove it and give the API's token with --token-file")
        if token is not None and not _is_token(token):
            raise SettingsError("--token-file: the token must be one word of printable ASCII characters")
        self._connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address = parts.netloc
        self._root = parts.path.rstrip("/") + "/api/v1/"
        self._url = f"{parts.scheme}://{parts.netloc}{parts.path}"
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    @property
    def url(self) -> str:
        """The address of the coordinator, without a slash at its end; its pages are below."""
        return self._url.rstrip("/")

    def get(self, *path: str, **query: str | int | None) -> Any:
        """The answer to GET on the path with these segments."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", path, _query(given))

    def text(self, *path: str, **query: str) -> str:
        """The answer to GET as text; it need not be JSON."""
        status, answer = self._send("GET", path, _query(query))
        return answer.decode(errors="replace") if status < 400 else _answer(self._url, status, answer)

    def pages(self, *path: str, **query: str | None) -> dict[str, Any]:
        """All pages of a list, put together as one."""
        items: list[Any] = []
        cursor = None
        while True:
            page = self.get(*path, limit=PAGE, cursor=cursor, **query)
            try:
                items += page["items"]
                cursor = page["next_cursor"]
            except (KeyError, TypeError):
                raise self._not_ours() from None
            if cursor is None:
                return {"items": items, "next_cursor": None}

    def read(self, parse: Callable[[Any], T], answer: Any) -> T:
        """The answer, read by `parse`. Raises Unavailable if it does not fit, so something else has answered.

        `parse` is `model_validate` of a model, for example.
        """
        try:
            return parse(answer)
        except ValueError:  # pydantic's ValidationError is one
            raise self._not_ours() from None

    def read_items(self, parse: Callable[[Any], T], page: Any) -> list[T]:
        """The items of a page, each as `read` does."""
        if not isinstance(page, dict) or not isinstance(page.get("items"), list):
            raise self._not_ours()
        return [self.read(parse, item) for item in page["items"]]

    def post(self, *path: str, body: Mapping[str, Any]) -> Any:
        """The answer to POST of a JSON body."""
        return self._ask("POST", path, "", _json(body))

    def put(self, *path: str, body: Mapping[str, Any]) -> Any:
        """The answer to PUT of a JSON body."""
        return self._ask("PUT", path, "", _json(body))

    def delete(self, *path: str, **query: str) -> Any:
        """The answer to DELETE."""
        return self._ask("DELETE", path, _query(query))

    def _not_ours(self) -> Unavailable:
        """The error for JSON that is not an answer of muster's API, or of another version of it."""
        return Unavailable(
            f"no muster coordinator of this version at {self._url} (its answer does not fit the API); check --url"
        )

    def _ask(self, method: str, path: tuple[str, ...], query: str = "", body: str | None = None) -> Any:
        return _answer(self._url, *self._send(method, path, query, body))

    def _send(self, method: str, path: tuple[str, ...], query: str, body: str | None = None) -> tuple[int, bytes]:
        if not all(path):  # the path would be that of a list, or none at all
            raise Refused("a name or an id is missing: one argument is empty")
        target = self._root + "/".join(quote(segment, safe="", errors=AS_TYPED) for segment in path) + query
        headers, sent = dict(self._headers), None
        if body is not None:
            headers["Content-Type"], sent = "application/json", body.encode()
            if len(sent) > _SENT_AS_IT_IS:
                headers["Content-Encoding"], sent = "gzip", gzip.compress(sent)
        try:
            connection = self._connect(self._address, timeout=TIMEOUT_S)
            try:
                connection.request(method, target, sent, headers)
                response = connection.getresponse()
                return response.status, response.read()
            finally:
                connection.close()
        except (OSError, HTTPException) as error:
            reason = " ".join(str(error).split())
            # What answers without TLS, or with a certificate that nobody knows, runs: starting it would not help.
            advice = _ABOUT_TLS if isinstance(error, SSLError) else "start it, or set --url or MUSTER_URL"
            raise Unavailable(f"no coordinator answers at {self._url} ({reason}); {advice}") from None


def _json(body: Mapping[str, Any]) -> str:
    """The body as JSON, which has no word for what Python reads from `nan` and `inf`."""
    try:
        return json.dumps(body, allow_nan=False)
    except ValueError:
        raise Refused("one of the numbers is not finite; give a number without nan and inf") from None


def _query(given: Mapping[str, str | int]) -> str:
    return f"?{urlencode(given, errors=AS_TYPED)}" if given else ""


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # such as an unclosed bracket
        return urlsplit("")


def _is_host_and_port(parts: SplitResult) -> bool:
    try:
        (parts.hostname or "").encode("idna")  # the connection would encode the name, and an empty label is an error
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_token(token: str) -> bool:
    """Whether a header can hold the token."""
    return all("!" <= character <= "~" for character in token)


def _no_muster(url: str, status: int) -> Unavailable:
    return Unavailable(f"no muster coordinator at {url} (it answered with status {status}); check --url")


def _answer(url: str, status: int, text: bytes) -> Any:
    try:
        answer = json.loads(text)
    except ValueError:
        raise _no_muster(url, status) from None
    if status < 400:
        return answer
    if not isinstance(answer, dict):
        raise _no_muster(url, status)
    detail = in_one_line(str(answer.get("detail") or answer.get("title") or f"status {status}"))
    raise Unavailable(f"{url}: {detail}") if status >= 500 else Refused(detail)
