"""What a daemon on this host says of itself."""

import json
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from muster.client import local_url

ANSWERED_WITHIN_S = 5.0


def answer_of(listen: str, path: str) -> dict[str, Any] | None:
    """The JSON object that a daemon that listens there answers, also with an error; None if nothing like it answers."""
    connection = HTTPConnection(urlsplit(local_url(listen)).netloc, timeout=ANSWERED_WITHIN_S)
    try:
        connection.request("GET", path)
        answer = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return answer if isinstance(answer, dict) else None
