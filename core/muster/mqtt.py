"""How the agent and the coordinator connect to the broker, so that both understand the settings in one way."""

import random
from typing import Any
from urllib.parse import urlsplit

import aiomqtt

from muster.config import BrokerSettings, read_secret
from muster.errors import SettingsError

MAX_INFLIGHT = 1_000
"""Messages of QoS 1 that may be under way at once in each direction; paho's own limit of 20 is for slow links."""

LONGEST_PAUSE_S = 30.0


def connection_options(broker: BrokerSettings, url: str) -> dict[str, Any]:
    """The arguments of `aiomqtt.Client` for the broker at `url`; SettingsError when a file cannot be read."""
    parts = urlsplit(url)
    secure = parts.scheme == "mqtts"
    return {
        "hostname": parts.hostname,
        "port": parts.port or (8883 if secure else 1883),
        "username": broker.username,
        "password": None if broker.password_file is None else read_secret(broker.password_file, "broker.password_file"),
        "tls_params": _tls(broker) if secure else None,
        "max_inflight_messages": MAX_INFLIGHT,
    }


def pause_s(attempt: int) -> float:
    """Seconds to wait after the `attempt`th failure in a row (from 0): full jitter, so that a fleet spreads out."""
    return random.uniform(0, min(LONGEST_PAUSE_S, 0.5 * 2 ** min(attempt, 10)))  # noqa: S311 (spreads load, no secret)


def _tls(broker: BrokerSettings) -> aiomqtt.TLSParameters:
    for key in ("ca_file", "cert_file", "key_file"):
        path = getattr(broker, key)
        if path is not None and not path.is_file():
            raise SettingsError(f"broker.{key}: there is no file {path}")
    as_text = {key: None if path is None else str(path) for key, path in broker if key.endswith("_file")}
    return aiomqtt.TLSParameters(
        ca_certs=as_text["ca_file"], certfile=as_text["cert_file"], keyfile=as_text["key_file"]
    )
