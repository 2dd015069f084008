"""Posts notices to targets. Remembers which notices each target has, and until when it wants no further ones."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from time import monotonic, time

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, StreamReader

from muster import ActionOutcome, Effect
from muster.errors import SettingsError
from muster_plugins.notifiers.webhook.answer import NOTIFIED, judge_answer
from muster_plugins.notifiers.webhook.credentials import read_credentials, without_secrets
from muster_plugins.notifiers.webhook.notice import AlarmNotice, Notice, cut
from muster_plugins.notifiers.webhook.request import make_request
from muster_plugins.notifiers.webhook.settings import WebhookTarget
from muster_plugins.notifiers.webhook.tls import tls_of
from muster_plugins.shared.error_words import in_words

MOST_REMEMBERED = 50_000
"""Maximum number of remembered notices, one for each target: room for the latest of 10,000 nodes for five targets.

Above that number, the least recently used notices are forgotten. If such a notice is sent again, a target can recognise
it by its Idempotency-Key; a chat shows it twice.
"""

_MOST_ANSWER_BYTES = 4096
_MOST_CHARACTERS = 200


class Delivery:
    """A client for all targets. Create it where the event loop runs, and close it there."""

    def __init__(self) -> None:
        self._session = ClientSession(cookie_jar=DummyCookieJar())
        self._last: dict[str, tuple[ActionOutcome, float]] = {}  # the outcome, and the earliest time of the next post

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def notify(
        self, targets: Mapping[str, WebhookTarget], notice: Notice | AlarmNotice
    ) -> dict[str, ActionOutcome]:
        """Notifies the targets; their outcomes by name. Targets that have the notice or want to wait get no post."""
        outcomes = await asyncio.gather(*(self._notify(name, target, notice) for name, target in targets.items()))
        return dict(zip(targets, outcomes, strict=True))

    async def _notify(self, name: str, target: WebhookTarget, notice: Notice | AlarmNotice) -> ActionOutcome:
        key = f"{notice.key}:{name}"
        last, until = self._last.get(key, (NOTIFIED, 0.0))
        wait_s = until - monotonic()
        if wait_s > 0:
            self._remember(key, last, until)
            return last if last is NOTIFIED else replace(last, retry_after_s=wait_s)
        try:
            outcome = await self._post(key, name, target, notice)
        except SettingsError as error:
            return ActionOutcome(effect=Effect.FAILED, detail=str(error))
        self._remember(key, outcome, inf if outcome is NOTIFIED else monotonic() + (outcome.retry_after_s or 0.0))
        return outcome

    async def _post(self, key: str, name: str, target: WebhookTarget, notice: Notice | AlarmNotice) -> ActionOutcome:
        url, now = target.url.get_secret_value(), time()
        credentials = read_credentials(name, target)
        request = make_request(key, target, credentials, notice, now)
        try:
            async with self._session.post(
                url,
                data=request.body,
                headers=request.headers,
                ssl=tls_of(name, target),
                timeout=ClientTimeout(total=target.timeout_s),
                allow_redirects=False,  # a redirect must not get our secrets
            ) as response:
                said = "" if response.ok else await _beginning(response.content)
        except TimeoutError:
            return ActionOutcome(effect=Effect.FAILED, detail=f"no answer within {target.timeout_s:g} s")
        except (ClientError, OSError) as error:
            detail = without_secrets(f"no answer: {in_words(error)}", target, credentials)
            return ActionOutcome(effect=Effect.FAILED, detail=detail)
        said = cut(without_secrets(said, target, credentials), _MOST_CHARACTERS)
        return judge_answer(response.status, response.headers.get("Retry-After"), said, now)

    def _remember(self, key: str, outcome: ActionOutcome, until: float) -> None:
        self._last.pop(key, None)  # moved to the end: a notice that is still used must not be the next to be dropped
        self._last[key] = outcome, until
        if len(self._last) > MOST_REMEMBERED:
            del self._last[next(iter(self._last))]


async def _beginning(content: StreamReader) -> str:
    """The beginning of an answer, cut so that a secret in it is never shown in part."""
    try:
        said = await content.readexactly(_MOST_ANSWER_BYTES)
    except asyncio.IncompleteReadError as end:
        said = end.partial
    return said.decode(errors="replace")
