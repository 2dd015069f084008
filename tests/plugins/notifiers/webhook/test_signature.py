"""Signatures, as others make and verify them."""

import base64
import subprocess

import pytest
from tests.cases import cases

from muster_plugins.notifiers.webhook.signature import key_of, signature_headers

BODY = b'{"node": "gpu-0042"}'
KEY = bytes(range(32))


def test_an_example_of_the_specification():
    """The one that Standard Webhooks gives, with its own secret."""
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signature_headers(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.usefixtures("live")
def test_openssl_agrees(tmp_path):
    """HMAC-SHA256 over id, time and body, with dots between them."""
    headers = signature_headers(KEY, "t1:ops", 1_700_000_000, BODY)
    (tmp_path / "signed").write_bytes(b"t1:ops.1700000000." + BODY)
    done = subprocess.run(
        [
            "openssl",
            "dgst",
            "-sha256",
            "-mac",
            "HMAC",
            "-macopt",
            f"hexkey:{KEY.hex()}",
            "-binary",
            tmp_path / "signed",
        ],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(done.stdout).decode()}"


@cases(
    ("secret", "text"),
    [("", "0 bytes"), ("not base64", "not base64"), ("ä", "not base64"), ("a", "not base64"), ("YQ==", "1 bytes"),
     ("A" * 88, "66 bytes")],
)  # fmt: skip
def test_what_is_no_secret(secret, text):
    """24 to 64 bytes in base64 are; the error does not repeat it."""
    with pytest.raises(ValueError, match=text):
        key_of(secret)
