"""What the guide to webhooks shows works as it stands."""

import base64
import re
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from muster.alarm import Alarm
from muster.config import Config, Settings, load
from muster.model import ServiceState
from muster.transition import Transition
from muster_plugins.checks.script.settings import ScriptSettings
from muster_plugins.notifiers.webhook.settings import WebhookSettings
from muster_plugins.notifiers.webhook.signature import key_of, signature_headers
from muster_plugins.shared.alarm_document import alarm_document
from muster_plugins.shared.transition_document import transition_document

GUIDE = (Path(__file__).parents[4] / "docs" / "how-to" / "webhooks.md").read_text(encoding="utf-8")
BODY = b'{"node": "gpu-0042"}'
KEY = bytes(range(32))
SECRET = base64.b64encode(KEY).decode()


def shown(language: str) -> list[str]:
    """The blocks of a language in the guide."""
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_environment():
    """It makes a target of its own."""
    (block,) = (block for block in shown("sh") if "export" in block)
    environment = dict(line.removeprefix("export ").split("=", 1) for line in block.splitlines())
    targets = Config(load(None, environment)).plugin("webhook", WebhookSettings).targets
    assert targets["chat"].format == "slack"


def test_the_verification():
    """It takes what we sign, with either form of the secret, and nothing else."""
    code, _ = shown("python")
    names: dict[str, Any] = {}
    exec(code, names)
    is_from_muster = names["is_from_muster"]
    now = int(time.time())
    headers = signature_headers(KEY, "t1:ops", now, BODY)
    assert is_from_muster(SECRET, headers, BODY)
    assert is_from_muster(f"whsec_{SECRET}", headers, BODY)
    other = base64.b64encode(bytes(32)).decode()
    assert not is_from_muster(other, headers, BODY)
    assert not is_from_muster(SECRET, headers, BODY + b" ")
    assert not is_from_muster(SECRET, headers | {"webhook-id": "t2:ops"}, BODY)
    assert not is_from_muster(SECRET, signature_headers(KEY, "t1:ops", now - 301, BODY), BODY)


@pytest.mark.usefixtures("live")
def test_the_secret(tmp_path):
    """As openssl makes it, with the line's end."""
    (command,) = (block for block in shown("sh") if "openssl" in block)
    subprocess.run(["sh", "-ec", command.replace("/etc/muster", str(tmp_path))], check=True, timeout=60)
    path = tmp_path / "inventory-secret"
    assert len(key_of(path.read_text().strip())) == 32
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_settings():
    """The tables can be used as they stand."""
    webhook, script = (Config(Settings.model_validate(tomllib.loads(block))) for block in shown("toml"))
    assert list(webhook.plugin("webhook", WebhookSettings).targets) == ["pager", "alerts", "inventory"]
    actor = script.plugin("script", ScriptSettings).actor
    assert actor is not None
    assert actor.can_cordon


def test_the_document():
    """It has the keys that a transition has, in their order."""
    text, alarm = shown("json")
    transition = Transition.model_validate_json(text)
    document = transition_document("prod", transition)
    assert transition.after is ServiceState.CORDONED
    assert keys_of(text) == list(document)
    assert keys_of(alarm) == list(alarm_document("prod", Alarm.model_validate_json(alarm)))


def keys_of(text: str) -> list[str]:
    """The outer keys of an indented document, in their order."""
    return re.findall(r'^  "(\w+)":', text, re.MULTILINE)
