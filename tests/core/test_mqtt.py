"""How settings become a connection to the broker."""

import asyncio

import aiomqtt
import pytest

from muster.config import BrokerSettings
from muster.errors import SettingsError
from muster.mqtt import addresses, connection_options, pause_s, publish
from muster.reconnect import LONGEST_PAUSE_S


@pytest.mark.parametrize(
    ("url", "host", "port", "secure"),
    [
        ("mqtt://broker", "broker", 1883, False),
        ("mqtt://broker:1", "broker", 1, False),
        ("mqtts://broker", "broker", 8883, True),
        ("mqtt://[::1]:1883", "::1", 1883, False),
    ],
)
def test_url(url, host, port, secure):
    """The scheme decides about TLS and the default port."""
    options = connection_options(BrokerSettings(), url)
    assert (options["hostname"], options["port"], options["tls_context"] is not None) == (host, port, secure)


def test_password_comes_from_its_file(tmp_path):
    """User name and password are handed over; a file that is missing is named by its setting."""
    path = tmp_path / "password"
    path.write_text("hush\n")
    options = connection_options(BrokerSettings(username="n1", password_file=path), "mqtt://broker")
    assert (options["username"], options["password"]) == ("n1", "hush")
    with pytest.raises(SettingsError, match=r"broker\.password_file: cannot read"):
        connection_options(BrokerSettings(password_file=tmp_path / "none"), "mqtt://broker")


@pytest.mark.parametrize("content", [None, "not a certificate"], ids=["missing", "garbage"])
@pytest.mark.parametrize("key", ["ca_file", "cert_file"])
def test_certificates_that_cannot_be_used_are_named(tmp_path, key, content):
    """A wrong path or file ends at the start with the setting's name, not in a handshake."""
    path = tmp_path / "file.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError, match=rf"broker\.{key}: cannot use {path}"):
        connection_options(BrokerSettings.model_validate({key: path}), "mqtts://broker")


def test_a_key_needs_its_certificate(tmp_path):
    """A key alone proves nothing to the broker."""
    with pytest.raises(SettingsError, match=r"broker\.key_file: set broker\.cert_file"):
        connection_options(BrokerSettings(key_file=tmp_path / "key"), "mqtts://broker")


def test_pauses_grow_to_their_limit():
    """Full jitter: anywhere between nothing and a bound that doubles up to a quarter of a minute."""
    for attempt, bound in ((0, 0.5), (3, 4.0), (100, LONGEST_PAUSE_S)):
        assert all(0 <= pause_s(attempt) <= bound for _ in range(100))


class Forgetful(aiomqtt.Client):
    """A client whose publishing forgets that it was cancelled, as `asyncio.wait_for` may before Python 3.12."""

    def __init__(self) -> None:
        """Connects to nothing."""

    async def publish(self, *_arguments, **_options) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return


async def test_a_cancellation_is_never_forgotten():
    """A task that is cancelled while it publishes ends, even when the confirmation comes at the same moment."""
    task = asyncio.create_task(publish(Forgetful(), "topic", b""))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_addresses_of_a_cluster_come_in_turns():
    """Each once, and then again from the first; over many clients, each is the first of some."""
    url = "mqtt://a,mqtt://b:1,mqtt://c"
    turns = addresses(url)
    taken = [next(turns) for _ in range(6)]
    assert sorted(taken[:3]) == sorted(url.split(","))
    assert taken[3:] == taken[:3]
    assert {next(addresses(url)) for _ in range(200)} == {*url.split(",")}
