"""Requests to the API server with one set of credentials, over connections that stay open."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import ClientSession
from kubernetes_asyncio.client import ApiClient, Configuration

from muster import __version__
from muster.model import Json
from muster_plugins.schedulers.kubernetes.api_error import Answer
from muster_plugins.schedulers.kubernetes.calls import Call
from muster_plugins.schedulers.kubernetes.proxy import proxy_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call with its data: the object's `name`, its `namespace` if it has one, and the body's content type `form`."""

    call: Call
    name: str = ""
    namespace: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None
    form: str = "application/json"


class ApiSession:
    """Answers are JSON, since the client would take seconds to make objects of a list."""

    def __init__(self, configuration: Configuration, timeout_s: float) -> None:
        self._api = _client(configuration)
        self._timeout_s = timeout_s
        self._asking = 0
        self._is_retired = False

    @property
    def way(self) -> str:
        """The URL of the server, and the proxy in front of it, if there is one."""
        configuration = self._api.configuration
        proxy = f" through the proxy {_without_password(configuration.proxy)}" if configuration.proxy else ""
        return f"{configuration.host}{proxy}"

    async def answer(self, question: Question) -> Answer:
        """The server's answer, with any status. Raises an error of the network if there is none."""
        self._asking += 1
        try:
            return await self._answer(question)
        finally:
            self._asking -= 1
            await self._close_at_the_end()

    async def retire(self) -> None:
        """Closes the session as soon as no request waits for an answer."""
        self._is_retired = True
        await self._close_at_the_end()

    async def _close_at_the_end(self) -> None:
        if self._is_retired and not self._asking:
            await self._api.close()

    async def _answer(self, question: Question) -> Answer:
        response = await self._api.call_api(
            question.call.path.format(name=question.name, namespace=question.namespace),
            question.call.method,
            query_params=[*question.query.items()],
            header_params={"Accept": "application/json", "Content-Type": question.form},
            body=question.body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=self._timeout_s,
        )
        async with response:
            return Answer(response.status, response.headers.get("Retry-After", ""), await response.read())


def _client(configuration: Configuration) -> ApiClient:
    """A client with its proxy looked up once. The library would look it up at each request, and read .netrc, too."""
    if configuration.proxy is None:
        configuration.proxy = proxy_for(str(configuration.host))
    api = ApiClient(configuration)
    api.user_agent = f"muster/{__version__}"
    session = api.rest_client.pool_manager
    api.rest_client.pool_manager = ClientSession(connector=session.connector)
    session.detach()
    return api


def _without_password(url: str) -> str:
    """The URL without its password. An invalid URL is cut as well: its password may be anywhere before an @."""
    return re.sub(r"^(\w+://)?.*@", r"\1", url)
