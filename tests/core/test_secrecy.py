"""No error message and no list of settings contains a secret."""

import itertools
from pathlib import Path

import pytest
from tests.cases import cases

from muster.client import Client
from muster.config import Config, load
from muster.errors import MusterError, SettingsError
from muster.secrecy import without_secrets
from muster_coordinator.store.opening import open_database
from muster_plugins.notifiers.webhook.settings import WebhookSettings

SECRET = "hunter2"

REFUSED = {
    "a user": f"mqtt://node:{SECRET}@broker:1883",
    "no slashes": f"mqtt:/node:{SECRET}@broker",
    "no scheme": f"node:{SECRET}@broker",
    "a slash": f"mqtt://node:{SECRET}/x@broker",
    "a hash": f"mqtt://node:{SECRET}#x@broker",
    "a bracket": f"mqtt://[node:{SECRET}@broker",
    "another scheme": f"amqp://node:{SECRET}@broker",
    "quotes": f"mqtt://node:'\"{SECRET}/@broker",
}


KEYS = ("BROKER__URL", "BROKER__LISTEN", "HTTP__LISTEN", "AGENT__ADDRESS", "BROKER", "HTTP")
URLS_BY_KEY = [*itertools.product(KEYS, REFUSED.values()), ("BROKER__URL", SECRET)]


@cases(("key", "url"), URLS_BY_KEY)
def test_a_refused_setting_is_not_in_the_error(key, url):
    """Neither in pydantic's words nor in those of a library. The error names the key."""
    with pytest.raises(SettingsError) as refused:
        load(None, {f"MUSTER_{key}": url})
    assert SECRET not in str(refused.value)
    assert key.lower().replace("__", ".") in str(refused.value)


@cases(
    "table",
    [
        '{"ops": {"url": "https://hooks.example:hunter2/x"}}',
        '{"ops": {"url": "ftp://hooks.example/hunter2"}}',
        '{"ops": {"url": "hunter2", "format": "slack"}}',
        '{"ops": "https://hooks.example/hunter2"}',
        '{"ops": {"url": ["https://hooks.example/hunter2"]}}',
        '{"ops": {"url": "https://hooks.example/x", "token": "hunter2"}}',
        '{"ops": {"url": "https://hooks.example/hunter2"',
    ],
)
def test_a_refused_webhook_is_not_in_the_error(table):
    """Its URL is enough to write to a chat."""
    with pytest.raises(SettingsError) as refused:
        Config(load(None, {"MUSTER_PLUGINS__WEBHOOK__TARGETS": table})).plugin("webhook", WebhookSettings)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://muster:{SECRET}@db:port/muster",
        f"postgresql://muster:{SECRET}@db:99999999/muster",
        f"nothing://muster:{SECRET}@db/muster",
        f"muster:{SECRET}@db/muster",
        f"sqlite:////proc/muster/muster.db?timeout={SECRET}",
        f"sqlite://muster:{SECRET}@/muster.db",
        f"postgresql+nothing://muster:{SECRET}@db/muster",
    ],
)
async def test_the_password_of_a_database_is_not_in_the_error(url):
    """If the database cannot be opened."""
    with pytest.raises(MusterError) as refused:
        await open_database(load(None, {"MUSTER_STORE__URL": url}))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("url", [f"http://me:{SECRET}@127.0.0.1:1", f"me:{SECRET}@host", f"ftp://me:{SECRET}@host"])
def test_the_password_in_a_coordinator_s_url_is_not_in_the_error(url):
    """Such a URL is refused, because the API takes a token."""
    with pytest.raises(SettingsError, match="--url") as refused:
        Client(url)
    assert SECRET not in str(refused.value)


@cases(
    ("url", "shown"),
    [
        ("postgresql://muster:a/b@c@db/muster", "postgresql://muster:***@db/muster"),
        ("postgresql://db/muster?password=a&ssl=true", "postgresql://db/muster?***"),
        ("postgresql://u:a@db/muster?password=b@c", "postgresql://u:***@c"),
        ("https://token@host/path", "https://***@host/path"),
        ("mqtt://broker:1883", "mqtt://broker:1883"),
        ("sqlite:////var/lib/muster.db", "sqlite:////var/lib/muster.db"),
    ],
)
def test_the_rest_of_a_url_is_shown(url, shown):
    """At any depth in the settings."""
    assert without_secrets({"a": [{"b": url}], "c": 1}) == {"a": [{"b": shown}], "c": 1}


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_config_show_prints_no_password(muster, tmp_path: Path, options):
    """Not even one with odd characters."""
    file = tmp_path / "muster.toml"
    file.write_text(f'[store]\nurl = "postgresql://u:a/b@{SECRET}@db/m?sslpassword={SECRET}"\n')
    done = muster("config", "show", "--config", str(file), *options)
    assert (done.returncode, SECRET in done.stdout, "u:***@db/m?***" in done.stdout) == (0, False, True)
