"""Checks whether targets can be reached, before there is anything to post. Posts nothing."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from muster.errors import SettingsError
from muster_plugins.notifiers.webhook.credentials import read_credentials
from muster_plugins.notifiers.webhook.settings import NAME, WebhookTarget
from muster_plugins.notifiers.webhook.tls import tls_of
from muster_plugins.shared.error_words import in_words


async def find_problems(targets: Mapping[str, WebhookTarget]) -> list[str]:
    """One line for each target that cannot be reached, with what to change."""
    found = await asyncio.gather(*(_problem(name, target) for name, target in targets.items()))
    return [problem for problem in found if problem is not None]


async def _problem(name: str, target: WebhookTarget) -> str | None:
    try:
        read_credentials(name, target)
        await _connect(name, target)
    except SettingsError as error:
        return str(error)
    except TimeoutError:
        reason = f"no answer within {target.timeout_s:g} s"
    except OSError as error:
        reason = in_words(error)
    else:
        return None
    host = urlsplit(target.url.get_secret_value()).hostname
    return f"plugins.{NAME}.targets.{name}: cannot reach {host} ({reason}): check url, ca_file and the network"


async def _connect(name: str, target: WebhookTarget) -> None:
    """Opens a connection and closes it; TimeoutError or OSError if that fails."""
    url = urlsplit(target.url.get_secret_value())
    secure = url.scheme == "https"
    tls = tls_of(name, target) if secure else None
    async with asyncio.timeout(target.timeout_s):
        _, writer = await asyncio.open_connection(url.hostname, url.port or (443 if secure else 80), ssl=tls)
        writer.close()
        with suppress(OSError):  # the target was reached, however the connection ends
            await writer.wait_closed()
