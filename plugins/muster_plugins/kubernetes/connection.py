"""A client of the API server that stays open, and finds its credentials by itself."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import ClientError
from kubernetes_asyncio.client import ApiClient, Configuration

from muster.model import Json
from muster_plugins.error_words import in_words
from muster_plugins.kubernetes.api import Unanswered
from muster_plugins.kubernetes.api_error import UNAUTHORIZED, Answer, ApiError, refused
from muster_plugins.kubernetes.calls import Call
from muster_plugins.kubernetes.credentials import load_credentials
from muster_plugins.kubernetes.settings import KubernetesSettings

_REFUSED = 400
"""An answer of this status or a higher one is not what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call with all that belongs to it; `form` is the body's content type."""

    call: Call
    node: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None
    form: str = "application/json"


class Connection:
    """Opened by the first question. Answers are JSON, since the client would take seconds to make objects of a list."""

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings
        self._loading = asyncio.Lock()
        self._api: ApiClient | None = None

    @property
    def server(self) -> str:
        """The URL of the API server, once it has been asked something."""
        return "the API server" if self._api is None else str(self._api.configuration.host)

    async def ask(self, question: Question) -> bytes:
        """The answer; ApiError when it is not what was asked for, or when there is none."""
        try:
            api = await self._opened()
            token = _token(api)
            answer = await self._answer(api, question)
            if answer.status == UNAUTHORIZED:
                await self._renew(api, token)
                answer = await self._answer(api, question)
        except TimeoutError:
            timeout_s = self._settings.actor.timeout_s
            raise ApiError(f"{self.server} did not answer within {timeout_s:g} s") from None
        except (ClientError, OSError, Unanswered, ValueError) as error:
            raise ApiError(f"no answer from {self.server}: {in_words(error)}") from None
        if answer.status >= _REFUSED:
            raise refused(question.call, answer)
        return answer.body

    async def close(self) -> None:
        """Closes it."""
        if self._api is not None:
            await self._api.close()
            self._api = None

    async def _opened(self) -> ApiClient:
        async with self._loading:
            if self._api is None:
                configuration = Configuration()
                await load_credentials(configuration, self._settings)
                self._api = ApiClient(configuration)
        return self._api

    async def _renew(self, api: ApiClient, expired: str | None) -> None:
        """Loads the credentials again; of all who ask with the same token only the first one does."""
        async with self._loading:
            if _token(api) == expired:
                await load_credentials(api.configuration, self._settings)

    async def _answer(self, api: ApiClient, question: Question) -> Answer:
        response = await api.call_api(
            question.call.path.format(node=question.node),
            question.call.method,
            query_params=[*question.query.items()],
            header_params={"Accept": "application/json", "Content-Type": question.form},
            body=question.body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=self._settings.actor.timeout_s,
        )
        async with response:
            return Answer(response.status, response.headers.get("Retry-After", ""), await response.read())


def _token(api: ApiClient) -> str | None:
    token: str | None = api.configuration.api_key.get("BearerToken")
    return token
