"""TLS to a real Mosquitto that knows its clients by their certificates."""

import socket
import ssl
import subprocess
from pathlib import Path

import aiomqtt
import pytest

from muster.config import BrokerSettings
from muster.mqtt import connection_options


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def make_ca(directory: Path, name: str, usage: str | None = "critical, keyCertSign, cRLSign") -> Path:
    certificate = directory / f"{name}.pem"
    key = directory / f"{name}.key"
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", certificate,
        *(() if usage is None else ("-addext", f"keyUsage = {usage}")),
    )  # fmt: skip
    return certificate


def make_certificate(directory: Path, ca: Path, name: str) -> tuple[Path, Path]:
    key, request, certificate = (directory / f"{name}.{suffix}" for suffix in ("key", "csr", "pem"))
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
    extensions = directory / "extensions"
    extensions.write_text("subjectAltName = DNS:localhost, IP:127.0.0.1\nauthorityKeyIdentifier = keyid\n")
    openssl(
        "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca.with_suffix(".key"), "-CAcreateserial",
        "-extfile", extensions, "-out", certificate,
    )  # fmt: skip
    return certificate, key


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Path:
    return make_ca(tmp_path_factory.mktemp("ca"), "authority")


@pytest.fixture(scope="module")
def broker(authority, new_mosquitto):
    certificate, key = make_certificate(authority.parent, authority, "broker")
    files = f"cafile {authority}\ncertfile {certificate}\nkeyfile {key}"
    with new_mosquitto(f"{files}\nrequire_certificate true\nuse_identity_as_username true") as running:
        yield f"mqtts://127.0.0.1:{running.port}"


async def connect(settings: BrokerSettings, url: str) -> None:
    async with aiomqtt.Client(**connection_options(settings, url), timeout=10) as client:
        await client.publish("hello", b"there", qos=1)


async def test_both_ends_prove_who_they_are(broker, authority):
    """With the authority's certificate and one of its own, a client gets in."""
    certificate, key = make_certificate(authority.parent, authority, "n1")
    await connect(BrokerSettings(ca_file=authority, cert_file=certificate, key_file=key), broker)


async def test_a_broker_of_another_authority_is_not_trusted(broker, tmp_path):
    """A broker whose certificate does not come from `broker.ca_file` is refused in the handshake."""
    options = connection_options(BrokerSettings(ca_file=make_ca(tmp_path, "stranger")), broker)
    address = options["hostname"], options["port"]
    with socket.create_connection(address, timeout=10) as raw, pytest.raises(ssl.SSLCertVerificationError):
        options["tls_context"].wrap_socket(raw, server_hostname=options["hostname"])


async def test_a_client_without_a_certificate_stays_out(broker, authority):
    """Knowing the authority is not enough."""
    with pytest.raises(aiomqtt.MqttError):
        await connect(BrokerSettings(ca_file=authority), broker)


@pytest.mark.parametrize(
    ("usage", "verdict"),
    [("critical, keyCertSign, cRLSign", "OK"), ("critical, cRLSign", "invalid CA certificate"), (None, "key usage")],
)
def test_the_guides_command_tells_certificates_that_newer_pythons_refuse(tmp_path, usage, verdict):
    """Python 3.13 and newer refuse what `openssl verify -x509_strict` refuses; older ones accept it."""
    authority = make_ca(tmp_path, "authority", usage)
    certificate, _ = make_certificate(tmp_path, authority, "broker")
    verify = ["openssl", "verify", "-x509_strict", "-CAfile", str(authority), str(certificate)]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert verdict in done.stdout + done.stderr
    assert (done.returncode == 0) is (verdict == "OK")
