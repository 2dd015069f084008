"""Follows a sweep to its end, with its progress on stderr."""

import sys
import time
from typing import Any

import typer

from muster.cli import INTERRUPTED
from muster.client import Client
from muster.errors import Unavailable
from muster.nouns import count
from muster.terminal import say
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.progress import SweepProgress

POLL_S = 0.3
"""Interval between two queries of a small sweep."""

_BUSY_SHARE = 0.2
"""Maximum share of the time for queries: for a large sweep, both sides need time for the answer."""


def follow(client: Client, answer: Any) -> Any:
    """Queries the sweep until it has ended and returns the last answer. Ctrl-C ends the command and not the sweep.

    Raises Unavailable if the coordinator no longer answers.
    """
    sweep = client.read(SweepRecord.model_validate, answer)
    progress = SweepProgress(sys.stderr)
    try:
        say(f"sweep {sweep.id}: {count(len(sweep.nodes), 'node')}", file=sys.stderr)
        while True:
            asked_at = time.monotonic()
            answer = client.get("sweeps", sweep.id)
            sweep = client.read(SweepRecord.model_validate, answer)
            progress.show(sweep)
            if sweep.ended_at is not None:
                return answer
            took_s = time.monotonic() - asked_at
            time.sleep(max(POLL_S, took_s * (1 - _BUSY_SHARE) / _BUSY_SHARE))
    except Unavailable:
        progress.leave()
        raise
    except KeyboardInterrupt:
        progress.leave()
        say(f"sweep {sweep.id} continues; to abort it: muster sweep abort {sweep.id}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
