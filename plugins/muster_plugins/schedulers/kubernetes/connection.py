"""The connection to the API server: opened by the first request, and again when credentials have changed."""

import asyncio

from aiohttp import ClientError, ClientHttpProxyError, ClientResponseError, ClientSSLError, InvalidURL
from kubernetes_asyncio.client import Configuration

from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes.api import Unanswered
from muster_plugins.schedulers.kubernetes.api_error import UNAUTHORIZED, Answer, ApiError, refused
from muster_plugins.schedulers.kubernetes.credentials import load_credentials
from muster_plugins.schedulers.kubernetes.session import ApiSession, Question
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings
from muster_plugins.shared.error_words import in_words

_OPENING_S = 8.0
"""Maximum wait for credentials: a transition has ten seconds. A program in a kubeconfig may request a token from a
cloud, and never ends if it waits for somebody to log in.
"""

_REFUSED = 400
"""An answer with this status or a higher one is an error."""


class Connection:
    """Stays open until it is closed.

    The credentials are loaded again when the server no longer accepts ours, or we no longer accept the server's.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings
        self._opening: asyncio.Task[ApiSession] | None = None
        self._session: ApiSession | None = None
        self.server = "the API server"

    async def ask(self, question: Question) -> bytes:
        """The answer. Raises ApiError if there is none, or if it is an error."""
        session = await self._opened()
        answer = await self._answer(session, question)
        if answer.status == UNAUTHORIZED:
            await self._give_up(session)
            answer = await self._answer(await self._opened(), question)
        if answer.status >= _REFUSED:
            raise refused(question.call, answer)
        return answer.body

    async def close(self) -> None:
        """Closes the connection."""
        if self._opening is not None:
            self._opening.cancel()
        if self._session is not None:
            await self._give_up(self._session)

    async def _opened(self) -> ApiSession:
        """The session. All callers that need a new one wait for the same one.

        Opening continues after they time out, because nothing would stop the program that was asked for a token.
        """
        if self._session is not None:
            return self._session
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="the way to the API server")
        try:
            async with asyncio.timeout(_OPENING_S):
                return await asyncio.shield(self._opening)
        except TimeoutError:
            path = self._settings.actor.kubeconfig
            cure = f"end the program that {path} names, or restart the coordinator; does it wait for a login?"
            text = f"plugins.kubernetes.actor.kubeconfig: no credentials after {_OPENING_S:g} s: {cure}"
            raise Unavailable(text) from None

    async def _open(self) -> ApiSession:
        try:
            configuration = Configuration()
            await load_credentials(configuration, self._settings)
            self.server = str(configuration.host)
            self._session = _session(configuration, self._settings.actor.timeout_s)
            return self._session
        finally:
            self._opening = None

    async def _give_up(self, session: ApiSession) -> None:
        if self._session is session:
            self._session = None
            await session.retire()

    async def _answer(self, session: ApiSession, question: Question) -> Answer:
        try:
            return await session.answer(question)
        except TimeoutError:
            timeout_s = self._settings.actor.timeout_s
            raise ApiError(f"{session.way} did not answer within {timeout_s:g} s") from None
        except (ClientError, OSError, Unanswered, ValueError) as error:
            if isinstance(error, ClientSSLError):
                await self._give_up(session)
            raise ApiError(f"no answer from {session.way}: {_why(error)}") from None


def _session(configuration: Configuration, timeout_s: float) -> ApiSession:
    try:
        return ApiSession(configuration, timeout_s)
    except OSError as error:
        raise Unavailable(f"cannot use the certificates for {configuration.host}: {in_words(error)}") from None


def _why(error: Exception) -> str:
    """The error in our own words if its text contains a URL: the URL of a proxy may contain a password."""
    if isinstance(error, InvalidURL):
        return "a URL that is not valid; in a password, / is written as %2F"
    if isinstance(error, ClientHttpProxyError):
        return f"the proxy says HTTP {error.status}"
    if isinstance(error, ClientResponseError):
        return " ".join(error.message.split())
    return in_words(error)
