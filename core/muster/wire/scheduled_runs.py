"""Runs that were due by schedule, and the ids that agent and coordinator give them alike.

The id of such a run says its outbox and its number in it: `<key>.<number>`, where the key stands for node and stream.
So a run that travels without its id, because it is like another one, is stored under the id that its agent logs. No
node can use the ids of another one, because the coordinator knows from which node a report came.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from muster.model import Verdict

SCHEDULED = "schedule"
"""The cause of a run that was due by schedule."""

QUIET_VERDICTS = (Verdict.PASS, Verdict.SKIPPED)
"""The verdicts of runs that may find nothing."""

IS_SCHEDULED = re.compile(r"([0-9a-f]{16})\.(\d{1,16})")
"""The form of the id of a scheduled run: the key of its node and stream, and its number."""


def is_uneventful(cause: str | None, group: str | None, verdict: str, facts: Mapping[str, Any]) -> bool:
    """Whether a run was due by schedule, alone, and has found nothing.

    It may be like another one, and others like it. Fingerprints are compared with those of other nodes.
    """
    return cause == SCHEDULED and group is None and verdict in QUIET_VERDICTS and "fingerprints" not in facts


def stream_key(node: str, stream: str) -> str:
    """The part of the ids that stands for node and stream."""
    return blake2b(f"{node} {stream}".encode(), digest_size=8).hexdigest()


def scheduled_id(key: str, seq: int) -> str:
    """The id of a scheduled run."""
    return f"{key}.{seq}"
