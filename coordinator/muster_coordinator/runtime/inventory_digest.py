"""Tells an inventory that was taken already by its bytes.

An inventory takes 20 KiB, and a coordinator that starts gets that of each node from the broker. Decoding one takes half
a millisecond, its digest 25 µs. So the record of each node has the digest of the message that its inventory is from.
"""

from hashlib import blake2b

import muster


def inventory_digest(payload: bytes) -> str:
    """A digest of an inventory's bytes. Another version may read more in the same bytes, so it has other digests."""
    return blake2b(payload, digest_size=16, key=muster.__version__.encode()).hexdigest()
