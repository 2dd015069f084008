"""Writes documents into a store of objects, over the library obstore."""

import os
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import from_url

from muster import ActionOutcome, Artifact, Effect
from muster_plugins.notifiers.artifacts.settings import ArtifactSettings

ONE_PUT_S = 30
"""Deadline of one document. The largest, the record of a sweep over ten thousand nodes, has some 20 MB."""

_SECRET_VARIABLE = re.compile(r"SECRET|TOKEN|KEY|PASSWORD|CREDENTIALS")

_LEAST_SECRET = 6
"""Shorter values are no secrets, and would hide parts of words."""

_MOST_CHARACTERS = 300


class Bucket:
    """The store that the settings name. Each document is written whole or not at all."""

    def __init__(self, url: str, settings: ArtifactSettings, prefix: str) -> None:
        self._prefix = prefix
        self._url = url
        self._settings = settings
        self._store: Any = None

    async def store(self, artifacts: Iterable[Artifact]) -> ActionOutcome:
        """Writes the documents in order; what is there already is written again."""
        written = 0
        for artifact in artifacts:
            key = f"{self._prefix}/{artifact.key}"
            try:
                await obstore.put_async(self._opened(), key, artifact.content.encode())
            except (BaseError, OSError) as error:
                return ActionOutcome(effect=Effect.FAILED, detail=f"{self._url}/{key}: {_in_words(error)}")
            written += 1
        return ActionOutcome(effect=Effect.DONE, detail=f"stored {written} documents")

    def _opened(self) -> Any:
        """The client, which makes a missing directory: that may fail, too."""
        if self._store is None:
            self._store = from_url(self._url, **_options(self._url, self._settings))
        return self._store


def _options(url: str, settings: ArtifactSettings) -> dict[str, Any]:
    if url.startswith("file:"):
        return {"mkdir": True}
    # The coordinator tries again, and says so in its log.
    once = {"max_retries": 0, "retry_timeout": timedelta(seconds=ONE_PUT_S)}
    client = {"timeout": f"{ONE_PUT_S}s", "allow_http": (settings.endpoint or "").startswith("http://")}
    config = {} if settings.endpoint is None else {"config": {"endpoint": settings.endpoint}}
    return {"client_options": client, "retry_config": once, **config}


def _in_words(error: Exception) -> str:
    """The first line of an error, which is for people, without the values of variables that may be secret."""
    text = str(error).partition("\n")[0]
    for name, value in os.environ.items():
        if _SECRET_VARIABLE.search(name) and len(value) >= _LEAST_SECRET:
            text = text.replace(value, "***")
    return text[:_MOST_CHARACTERS]
