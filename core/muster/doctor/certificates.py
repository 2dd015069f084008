"""Until when the certificates of a connection to the broker are valid, and whether ours has the right name.

Python's `ssl` reads a certificate only when it verifies one. So ours is verified in a handshake with ourselves, in
which it is its own authority.
"""

import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from muster.addresses import broker_urls, is_loopback_host
from muster.config import BrokerSettings
from muster.doctor.setup_finding import SetupFinding
from muster.errors import SettingsError
from muster.model import Verdict
from muster.mqtt import connection_options

SOON_S = 30 * 86_400.0
"""A certificate that ends within this time is about to end, unless it is of a kind that is renewed shortly before."""

LAST_SHARE = 0.2
"""The share of its life that such a certificate has left at least."""

ANSWERED_WITHIN_S = 5.0

CHECK = "certificates"

RENEW = "renew it: delete it from the directory of `muster init` and call that again, or ask your authority"

RENEW_ALL = "make a new authority, and issue all certificates again"


def certificates(broker: BrokerSettings, url: str, now: float, node: str | None = None) -> Iterator[SetupFinding]:
    """The authority's certificate, our own, and those of each broker in `url`.

    A broker that asks for no user name knows a node by its certificate, which then must have the name of the `node`.
    """
    urls = [each for each in broker_urls(url) if urlsplit(each).scheme == "mqtts"]
    if not urls:
        yield _without_tls(url)
        return
    if broker.ca_file is not None:
        yield _of_authority(broker.ca_file, now)
    if broker.cert_file is not None:
        yield _own(broker.cert_file, broker.key_file, node if broker.username is None else None, now)
    for each in urls:
        yield _of_broker(broker, each, now)


def _without_tls(url: str) -> SetupFinding:
    if all(is_loopback_host(urlsplit(each).hostname or "") for each in broker_urls(url)):
        return SetupFinding(CHECK, Verdict.PASS, "the broker is on this host, so its connection needs none")
    text = "passwords and reports cross the network in clear text; use mqtts:// in broker.url unless you trust it"
    return SetupFinding(CHECK, Verdict.WARN, text)


def _of_authority(path: Path, now: float) -> SetupFinding:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(path)
    except (OSError, ssl.SSLError) as error:
        return SetupFinding(CHECK, Verdict.FAIL, f"broker.ca_file: cannot use {path}: {_reason(error)}")
    found = context.get_ca_certs()
    if not found:
        return SetupFinding(CHECK, Verdict.FAIL, f"broker.ca_file: {path} has no certificate of an authority")
    first = min(found, key=lambda each: ssl.cert_time_to_seconds(str(each["notAfter"])))
    return _dated(f"broker.ca_file {path}", first, now, RENEW_ALL)


def _own(cert: Path, key: Path | None, node: str | None, now: float) -> SetupFinding:
    what = f"broker.cert_file {cert}"
    try:
        found = _verified_by_itself(cert, key)
    except ssl.SSLCertVerificationError as error:
        return SetupFinding(CHECK, Verdict.FAIL, f"{what}: {error.verify_message}; {RENEW}")
    except (OSError, ssl.SSLError) as error:
        return SetupFinding(CHECK, Verdict.FAIL, f"{what}: cannot be used: {_reason(error)}")
    name = _common_name(found)
    if node is not None and name != node:
        text = f"{what}: is for the node {name!r}, and this node is {node!r}; copy that of {node!r} here, or set node"
        return SetupFinding(CHECK, Verdict.FAIL, text)
    return _dated(what, found, now)


def _common_name(certificate: Mapping[str, Any]) -> str:
    """The name that a broker takes for the account; empty if there is none."""
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return names[-1] if names else ""


def _verified_by_itself(cert: Path, key: Path | None) -> Mapping[str, Any]:
    """The fields of a client's certificate. Raises SSLCertVerificationError if it is not valid now."""
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    server.verify_mode = ssl.CERT_REQUIRED
    server.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    server.load_verify_locations(cert)
    for context in (client, server):
        context.load_cert_chain(cert, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    speaking = client.wrap_bio(to_client, to_server)
    hearing = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (speaking, hearing, speaking, hearing):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return hearing.getpeercert() or {}


def _of_broker(broker: BrokerSettings, url: str, now: float) -> SetupFinding:
    what = f"the broker's at {urlsplit(url).netloc}"
    try:
        options = connection_options(broker, url)
        with (
            socket.create_connection((options["hostname"], options["port"]), ANSWERED_WITHIN_S) as raw,
            options["tls_context"].wrap_socket(raw, server_hostname=options["hostname"]) as secured,
        ):
            return _dated(what, secured.getpeercert(), now)
    except ssl.SSLCertVerificationError as error:
        text = "it must be valid now, be for that host name, and come from an authority in broker.ca_file"
        return SetupFinding(CHECK, Verdict.FAIL, f"{what}: {error.verify_message}; {text}")
    except (OSError, ssl.SSLError) as error:
        return SetupFinding(CHECK, Verdict.FAIL, f"{what}: no TLS connection: {_reason(error)}")
    except SettingsError as error:
        return SetupFinding(CHECK, Verdict.FAIL, str(error))


def _dated(what: str, certificate: Mapping[str, Any], now: float, remedy: str = RENEW) -> SetupFinding:
    begins, ends = (ssl.cert_time_to_seconds(certificate[key]) for key in ("notBefore", "notAfter"))
    until = f"valid until {datetime.fromtimestamp(ends, UTC):%Y-%m-%d %H:%M} UTC"
    if now >= ends:
        return SetupFinding(CHECK, Verdict.FAIL, f"{what}: was {until}; {remedy}")
    if now < begins:
        return SetupFinding(CHECK, Verdict.FAIL, f"{what}: not valid yet; is the clock of this host wrong?")
    is_near = ends - now < min(SOON_S, LAST_SHARE * (ends - begins))
    return SetupFinding(CHECK, Verdict.WARN if is_near else Verdict.PASS, f"{what}: {until}" + f"; {remedy}" * is_near)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
