"""The agent's side: creates a key, gets a certificate for it from the signer, and renews the certificate in time."""

import os
import random
import signal
import ssl
import sys
import time
from datetime import datetime
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from muster.errors import Unavailable
from muster.mqtt import pause_s
from muster_plugins.schedulers.kubernetes.api_error import in_its_words
from muster_plugins.schedulers.kubernetes.enrolment.authority import utc_now
from muster_plugins.schedulers.kubernetes.enrolment.signer import PATH
from muster_plugins.shared.error_words import in_words

TIMEOUT_S = 30.0
"""Timeout for each of connecting, TLS and answering. When a cluster starts, many agents wait for their turn."""

MOST_BYTES = 1 << 16
"""Maximum size of an answer."""

LOOK_AGAIN_S = 60.0
"""Longest sleep: after it, the loop notices that the clock was set or the node was suspended."""

log = structlog.get_logger()
"""Never logs tokens or keys."""


class NotEnrolled(Exception):
    """There is no certificate yet; the text says why."""


class Enrolment(NamedTuple):
    """The signer's URL, its authority's certificate, the pod's token, and the directory for certificate and key."""

    signer: str
    authority_file: Path
    token_file: Path
    directory: Path


def require_places(enrolment: Enrolment) -> None:
    """Raises Unavailable if something is missing that no retry brings: a pod gets its volumes before it starts."""
    problems = [
        f"{option}: cannot read {file}"
        for option, file in (("--authority", enrolment.authority_file), ("--token", enrolment.token_file))
        if not os.access(file, os.R_OK)
    ]
    if not enrolment.directory.is_dir() or not os.access(enrolment.directory, os.W_OK | os.X_OK):
        problems.append(f"--tls: cannot write to {enrolment.directory}")
    if problems:
        raise Unavailable(f"{'; '.join(problems)}; mount the volumes as daemonset/base/agent.yaml does")


def keep_enrolled(enrolment: Enrolment) -> None:
    """Gets a certificate, and renews it after half of its life, until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    attempt = 0
    while True:
        try:
            certificate = enrol(enrolment)
        except NotEnrolled as error:
            log.warning("not_enrolled", error=str(error), signer=enrolment.signer, attempt=attempt)
            time.sleep(pause_s(attempt))
            attempt += 1
            continue
        attempt = 0
        log.info("enrolled", subject=certificate.subject.rfc4514_string(), until=str(certificate.not_valid_after_utc))
        _sleep_until(_renewal(certificate))


def enrol(enrolment: Enrolment) -> x509.Certificate:
    """Writes tls.key, ca.crt and, last, tls.crt. Raises NotEnrolled if the signer gives no certificate for this key."""
    try:
        key = _key(enrolment.directory / "tls.key")
        answer = _ask(enrolment, _public(key))
        certificate = x509.load_pem_x509_certificate(answer)
        if certificate.public_key() != key.public_key():
            raise NotEnrolled("the signer's certificate is not for the key that was sent")
        _replace(enrolment.directory / "ca.crt", enrolment.authority_file.read_bytes())
        _replace(enrolment.directory / "tls.crt", answer)
    except TimeoutError:
        raise NotEnrolled(f"the signer did not answer within {TIMEOUT_S:g} s") from None
    except (OSError, HTTPException) as error:
        raise NotEnrolled(in_words(error)) from None
    except ValueError:
        raise NotEnrolled("the signer's answer is no certificate, or the stored tls.key is no key") from None
    return certificate


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The stored key, or a new one. It never changes while the pod lives, so it always fits the certificate."""
    if path.exists():
        key = load_pem_private_key(path.read_bytes(), password=None)
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return key
    key = ec.generate_private_key(ec.SECP256R1())
    _replace(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _ask(enrolment: Enrolment, public_key: bytes) -> bytes:
    parts = urlsplit(enrolment.signer)
    context = ssl.create_default_context(cafile=enrolment.authority_file)
    token = enrolment.token_file.read_text(encoding="ascii").strip()
    connection = HTTPSConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S, context=context)
    try:
        connection.request("POST", PATH, public_key, {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        answer = response.read(MOST_BYTES)
    finally:
        connection.close()
    if response.status != 200:
        raise NotEnrolled(f"the signer refused: {in_its_words(response.status, answer)}")
    return answer


def _renewal(certificate: x509.Certificate) -> datetime:
    """When to renew: after 40 to 60 % of the certificate's life, so that agents do not all renew together."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_before_utc + life * random.uniform(0.4, 0.6)  # noqa: S311 (spreads load, no secret)


def _sleep_until(instant: datetime) -> None:
    while (left := (instant - utc_now()).total_seconds()) > 0:
        time.sleep(min(left, LOOK_AGAIN_S))


def _replace(path: Path, content: bytes) -> None:
    """Replaces a file atomically, because the agent may read it at any time.

    Its group may read it: the agent may run as another user of that group.
    """
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o640)
    new.write_bytes(content)
    new.replace(path)
