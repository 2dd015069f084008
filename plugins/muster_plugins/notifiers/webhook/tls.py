"""The TLS verification of a target's server."""

import ssl
from functools import lru_cache
from pathlib import Path

from muster.errors import SettingsError
from muster_plugins.notifiers.webhook.settings import NAME, WebhookTarget


def tls_of(name: str, target: WebhookTarget) -> ssl.SSLContext:
    """A context that verifies certificate and name. Raises SettingsError if the CA file cannot be used."""
    try:
        return _context(target.ca_file, None if target.ca_file is None else target.ca_file.stat().st_mtime_ns)
    except OSError as error:
        key = f"plugins.{NAME}.targets.{name}.ca_file"
        raise SettingsError(f"{key}: cannot use {target.ca_file}: {error.strerror or error}") from None


@lru_cache  # cached: a post may be one of hundreds, and this reads all certificates that the host trusts
def _context(ca_file: Path | None, _written_at: int | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)
