"""The contents of a certificate, and the keys that get one."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from muster.errors import SettingsError
from muster_plugins.schedulers.kubernetes.enrolment.authority import Authority, NoSuchKey

NOW = datetime.now(UTC).replace(microsecond=0)


def public(key) -> bytes:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


@pytest.fixture(scope="module")
def key():
    return ec.generate_private_key(ec.SECP256R1())


def test_a_certificate_names_the_node_and_is_for_clients_only(authority, authority_files, key):
    """It is valid for a day, is signed by the authority, and cannot sign anything itself."""
    made = x509.load_pem_x509_certificate(authority.issue("n1", public(key), NOW))
    made.verify_directly_issued_by(x509.load_pem_x509_certificate((authority_files / "tls.crt").read_bytes()))
    assert made.subject.rfc4514_string() == "CN=n1"
    assert made.public_key() == key.public_key()
    assert (made.not_valid_before_utc, made.not_valid_after_utc) == (
        NOW - timedelta(minutes=5),
        NOW + timedelta(days=1),
    )
    found = {type(extension.value): extension for extension in made.extensions}
    assert list(found[x509.ExtendedKeyUsage].value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert found[x509.BasicConstraints].value == x509.BasicConstraints(ca=False, path_length=None)
    assert found[x509.BasicConstraints].critical
    assert not found[x509.KeyUsage].value.key_cert_sign
    assert x509.SubjectAlternativeName not in found


def test_a_certificate_does_not_outlive_the_authority(authority, authority_files, key):
    """It expires with the authority's own certificate."""
    own = x509.load_pem_x509_certificate((authority_files / "tls.crt").read_bytes())
    late = own.not_valid_after_utc - timedelta(hours=12)
    made = x509.load_pem_x509_certificate(authority.issue("n1", public(key), late))
    assert made.not_valid_after_utc == own.not_valid_after_utc


OTHER_KEYS = {
    "nothing": lambda: b"",
    "garbage": lambda: b"garbage",
    "no-key": lambda: b"-----BEGIN PUBLIC KEY-----\n" + b"A" * 3000 + b"\n-----END PUBLIC KEY-----\n",
    "rsa": lambda: public(rsa.generate_private_key(65537, 2048)),
    "weak": lambda: public(ec.generate_private_key(ec.SECP192R1())),
    "p384": lambda: public(ec.generate_private_key(ec.SECP384R1())),
    "ed25519": lambda: public(ed25519.Ed25519PrivateKey.generate()),
    "dsa": lambda: public(dsa.generate_private_key(1024)),
    "private": lambda: ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    ),
}
"""What an agent might send. Making a key takes time, so that none is made before its test runs."""


@pytest.mark.parametrize("sent", OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_other_keys_are_refused(authority, sent):
    """Agents create one kind of key only."""
    with pytest.raises(NoSuchKey, match="P-256"):
        authority.issue("n1", sent(), NOW)


def test_an_authority_without_its_own_key_is_refused(authority_files, tmp_path):
    """The error names the files."""
    (tmp_path / "tls.crt").write_bytes((authority_files / "tls.crt").read_bytes())
    with pytest.raises(SettingsError, match=r"tls\.key"):
        Authority.read(tmp_path)
    (tmp_path / "tls.key").write_bytes((authority_files / "server.key").read_bytes())
    with pytest.raises(SettingsError, match="of the certificate in"):
        Authority.read(tmp_path)
