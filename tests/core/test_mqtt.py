"""How settings become a connection to the broker."""

import pytest

from muster.config import BrokerSettings
from muster.errors import SettingsError
from muster.mqtt import LONGEST_PAUSE_S, connection_options, pause_s


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
    assert (options["hostname"], options["port"], options["tls_params"] is not None) == (host, port, secure)


def test_password_comes_from_its_file(tmp_path):
    """User name and password are handed over; a file that is missing is named by its setting."""
    path = tmp_path / "password"
    path.write_text("hush\n")
    options = connection_options(BrokerSettings(username="n1", password_file=path), "mqtt://broker")
    assert (options["username"], options["password"]) == ("n1", "hush")
    with pytest.raises(SettingsError, match=r"broker\.password_file: cannot read"):
        connection_options(BrokerSettings(password_file=tmp_path / "none"), "mqtt://broker")


@pytest.mark.parametrize("key", ["ca_file", "cert_file", "key_file"])
def test_missing_certificates_are_named(tmp_path, key):
    """A wrong path ends at the start with the setting's name, not in a handshake."""
    broker = BrokerSettings.model_validate({key: tmp_path / "none"})
    with pytest.raises(SettingsError, match=rf"broker\.{key}: there is no file"):
        connection_options(broker, "mqtts://broker")


def test_pauses_grow_to_their_limit():
    """Full jitter: anywhere between nothing and a bound that doubles up to half a minute."""
    for attempt, bound in ((0, 0.5), (3, 4.0), (100, LONGEST_PAUSE_S)):
        assert all(0 <= pause_s(attempt) <= bound for _ in range(100))
