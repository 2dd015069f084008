"""The secrets of a target. They are read for each post, because they may be replaced while the coordinator runs."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from muster.errors import SettingsError
from muster.secret_file import read_secret
from muster_plugins.notifiers.webhook.settings import NAME, WebhookTarget
from muster_plugins.notifiers.webhook.signature import key_of

_LEAST_SECRET = 8
"""Minimum length of a secret. Shorter parts of a path or query are words such as `api` or `v2`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The credentials for a target; None for those that it does not need."""

    signing_key: bytes | None = field(default=None, repr=False)
    routing_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


def read_credentials(name: str, target: WebhookTarget) -> Credentials:
    """The secrets of the target with that name. Raises SettingsError if a file does not hold a valid secret."""
    secret = _read(name, "secret_file", target.secret_file)
    return Credentials(
        signing_key=None if secret is None else _signing_key(name, target, secret),
        routing_key=_read(name, "routing_key_file", target.routing_key_file),
        token=_read(name, "token_file", target.token_file),
    )


def _signing_key(name: str, target: WebhookTarget, secret: str) -> bytes:
    try:
        return key_of(secret)
    except ValueError as error:
        raise SettingsError(
            f"plugins.{NAME}.targets.{name}.secret_file: {target.secret_file} does not hold a signing key: it {error}; "
            "`openssl rand -base64 32` makes a valid one"
        ) from None


def _read(name: str, key: str, path: Path | None) -> str | None:
    """The single word in the file. Anything else must not get into a header, nor into the text of an error."""
    if path is None:
        return None
    where = f"plugins.{NAME}.targets.{name}.{key}"
    secret = read_secret(path, where)
    if len(secret.split()) != 1 or not secret.isascii() or not secret.isprintable():
        raise SettingsError(f"{where}: {path} does not hold one word of ASCII")
    return secret


def without_secrets(text: str, target: WebhookTarget, credentials: Credentials) -> str:
    """The text in one line, with `***` for secrets of the target: some servers echo the request."""
    url = urlsplit(target.url.get_secret_value())
    parts = [part for part in re.split("[/?&=]", f"{url.path}?{url.query}") if len(part) >= _LEAST_SECRET]
    for secret in filter(None, (credentials.routing_key, credentials.token, *parts)):
        text = text.replace(secret, "***")
    return " ".join(text.split())
