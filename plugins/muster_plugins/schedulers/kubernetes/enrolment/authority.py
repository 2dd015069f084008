"""The certificate authority that issues certificates in the names of nodes."""

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster.errors import SettingsError

LIFETIME = timedelta(days=1)
"""There is no revocation list: a certificate that was stolen from a node expires within a day."""

CLOCKS_APART = timedelta(minutes=5)
"""A broker whose clock is this far behind accepts a new certificate at once."""

AuthorityKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class NoSuchKey(Exception):
    """The applicant sent no public key of the right kind; the text says which kind to send."""


class Authority:
    """Issues certificates that the broker accepts from its clients."""

    def __init__(self, certificate: x509.Certificate, key: AuthorityKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The authority with the certificate tls.crt and the key tls.key. Raises SettingsError if they are unusable."""
        certificate_file, key_file = directory / "tls.crt", directory / "tls.key"
        try:
            certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
            key = load_pem_private_key(key_file.read_bytes(), password=None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise SettingsError(
                f"{certificate_file}, {key_file}: cannot read a certificate and its key: {error}"
            ) from None
        if not isinstance(key, AuthorityKey) or key.public_key() != certificate.public_key():
            raise SettingsError(f"{key_file}: not the RSA or elliptic key of the certificate in {certificate_file}")
        return cls(certificate, key)

    def issue(self, node: str, public_key: bytes, now: datetime) -> bytes:
        """A client certificate in PEM for a node and its public key in PEM. Raises NoSuchKey if it is not on P-256."""
        key = _on_p256(public_key)
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        issued = (
            x509.CertificateBuilder()
            .subject_name(_name(node))
            .issuer_name(self._certificate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCKS_APART)
            .not_valid_after(min(now + LIFETIME, self._certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(self._key_identifier(), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return issued.public_bytes(Encoding.PEM)

    def _key_identifier(self) -> x509.AuthorityKeyIdentifier:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._certificate.public_key())  # type: ignore[arg-type]


def _name(node: str) -> x509.Name:
    """The subject. A node's name may exceed the 64 characters of X.520; OpenSSL and Mosquitto accept that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node, _validate=False)])


def utc_now() -> datetime:
    """The time now, as certificates state it."""
    return datetime.now(UTC)


def _on_p256(public_key: bytes) -> ec.EllipticCurvePublicKey:
    try:
        key = load_pem_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise NoSuchKey("send a public key on the curve P-256, in PEM")
    return key
