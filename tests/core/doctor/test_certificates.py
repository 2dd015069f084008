"""What is said about certificates of an authority that the test makes, and about a real broker's."""

import time
from pathlib import Path

import pytest
from tests.deploy.authority import DAY_S, Authority

from muster.config import BrokerSettings
from muster.doctor.certificates import certificates
from muster.model import Verdict

pytestmark = pytest.mark.usefixtures("live")

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL

AWAY = "mqtts://127.0.0.1:1"


def from_to(begin_days: float, end_days: float) -> tuple[str, str]:
    """The days from now between which a certificate is valid, as openssl wants them."""
    begin, end = (
        time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * DAY_S)) for days in (begin_days, end_days)
    )
    return begin, end


@pytest.fixture(scope="module")
def authority(live, tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


def said(url: str = AWAY, **files: Path) -> list[tuple[Verdict, str]]:
    """The verdicts and sentences about the files, and then about the broker."""
    broker = BrokerSettings.model_validate({"url": url, **files})
    return [(finding.verdict, finding.detail) for finding in certificates(broker, url, time.time())]


@pytest.mark.parametrize(
    ("valid", "verdict", "words"),
    [
        ((-100, 265), PASS, "valid until "),
        ((-340, 25), WARN, "; renew it"),
        ((-0.5, 0.5), PASS, "valid until "),
        ((-0.9, 0.1), WARN, "; renew it"),
        ((-365, -1), FAIL, "certificate has expired; renew it: delete it from"),
        ((1, 365), FAIL, "certificate is not yet valid; renew it"),
    ],
    ids=["a year", "a year's end", "a day, as in Kubernetes", "a day's end", "expired", "not yet"],
)
def test_our_own_certificate_has_an_end(authority, valid, verdict, words):
    """A month before, or a fifth of its life, it is time to renew it."""
    cert, key = authority.issue("n1", valid=from_to(*valid))
    (found, text), _ = said(cert_file=cert, key_file=key)
    assert (found, text.startswith(f"broker.cert_file {cert}"), words in text) == (verdict, True, True), text


@pytest.mark.parametrize(
    ("node", "account", "verdict", "words"),
    [
        ("n1", {}, PASS, "valid until "),
        ("n2", {}, FAIL, ": is for the node 'n1', and this node is 'n2'; copy that of 'n2' here, or set node"),
        ("n2", {"username": "n2"}, PASS, "valid until "),
    ],
    ids=["its own", "another node's", "an account by user name"],
)
def test_our_own_certificate_has_our_name(authority, node, account, verdict, words):
    """The broker takes a node for the one in its certificate, unless it asks for a user name."""
    cert, key = authority.issue("n1")
    broker = BrokerSettings.model_validate({"url": AWAY, "cert_file": cert, "key_file": key, **account})
    found = next(certificates(broker, AWAY, time.time(), node))
    assert (found.verdict, words in found.detail) == (verdict, True), found.detail


def test_the_certificate_of_the_authority_has_one_too(authority, tmp_path):
    """The authority here is valid for a month. A file without a certificate is refused, as is one that is not there."""
    (verdict, text), _ = said(ca_file=authority.certificate)
    assert (verdict, text.startswith(f"broker.ca_file {authority.certificate}: valid until")) == (PASS, True)
    leaf, key = authority.issue("n1")
    for path, words in (
        (leaf, "no certificate of an authority"),
        (key, "cannot use"),
        (tmp_path / "x", "No such file"),
    ):
        (verdict, text), *_ = said(ca_file=path)
        assert (verdict, words in text) == (FAIL, True), text


def test_a_key_that_does_not_fit_is_refused(authority):
    """Or one that is not there."""
    cert, _ = authority.issue("n1")
    _, other = authority.issue("n2")
    (verdict, text), _ = said(cert_file=cert, key_file=other)
    assert (verdict, "cannot be used" in text) == (FAIL, True), text


def test_a_broker_without_tls_is_a_risk_in_a_network():
    """On the same host it is none."""
    assert said("mqtt://127.0.0.1:1883") == [(PASS, "the broker is on this host, so its connection needs none")]
    ((verdict, text),) = said("mqtt://broker.example:1883")
    assert (verdict, "clear text" in text) == (WARN, True)


@pytest.mark.parametrize(
    ("issued", "verdict", "words"),
    [
        ({}, PASS, "valid until 2040-01-01 00:00 UTC"),
        ({"valid": ("20200101000000Z", "20210101000000Z")}, FAIL, "certificate has expired; it must be valid now"),
        ({"host": "elsewhere"}, FAIL, "IP address mismatch"),
    ],
    ids=["valid", "expired", "of another host"],
)
def test_the_certificate_of_a_real_broker(authority, new_mosquitto, issued, verdict, words):
    """It is looked at as a client does, whether the broker wants one of ours or not."""
    cert, key = authority.issue("broker", **issued)
    with new_mosquitto(f"certfile {cert}\nkeyfile {key}\nallow_anonymous true") as broker:
        ((_, _), (found, text)) = said(f"mqtts://127.0.0.1:{broker.port}", ca_file=authority.certificate)
    assert (found, words in text) == (verdict, True), text


def test_what_does_not_speak_tls_is_no_such_broker(authority, mosquitto):
    """The port of a broker without TLS, or of none."""
    for port in (mosquitto.port, 1):
        ((_, _), (verdict, text)) = said(f"mqtts://127.0.0.1:{port}", ca_file=authority.certificate)
        assert (verdict, "no TLS connection" in text) == (FAIL, True), text
