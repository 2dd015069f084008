"""The id of the machine, with which the coordinator notices that two machines use the name of one node."""

import hashlib
import hmac
from pathlib import Path

_MOST_BYTES = 4_096


def machine_of(path: Path) -> str:
    """An id that follows from the content of the file; empty if there is none.

    The content itself stays here, as machine-id(5) asks for: what knows it can guess other ids of the machine.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES).strip()
    except OSError:
        return ""
    if content in (b"", b"uninitialized"):  # the latter: while the machine starts for the first time
        return ""
    return hmac.digest(content, b"muster", hashlib.sha256).hex()[:16]
