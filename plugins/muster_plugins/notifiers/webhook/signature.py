"""Signs posts as Standard Webhooks (standardwebhooks.com) specifies, so any of its libraries can verify them.

Written by hand: the specification is one HMAC and three headers, and its library would be one more dependency on the
machine that may cordon nodes. Tests compare with the example of the specification and with openssl.
"""

import base64
import binascii
import hmac

_PREFIX = "whsec_"
_LEAST_BYTES, _MOST_BYTES = 24, 64


def key_of(secret: str) -> bytes:
    """The key that a secret stands for; ValueError, without the secret in its text, if the secret is not valid."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64") from None
    if not _LEAST_BYTES <= len(key) <= _MOST_BYTES:
        raise ValueError(f"holds {len(key)} bytes, not {_LEAST_BYTES} to {_MOST_BYTES}")
    return key


def signature_headers(key: bytes, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that say who posts `body`, and when, in seconds since the epoch."""
    signature = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, "sha256")
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
