"""Follows a sweep to its end, with its progress on stderr."""

import sys
import time
from typing import Any

import typer

from muster.client import Client
from muster.errors import Unavailable
from muster.nouns import count
from muster.start import INTERRUPTED
from muster.terminal import say
from muster_coordinator.cli.polling import pause
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.progress import SweepProgress

POLL_S = 0.3
"""Interval between two queries of a small sweep."""


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
            pause(asked_at, POLL_S)
    except Unavailable:
        progress.leave()
        raise
    except KeyboardInterrupt:
        progress.leave()
        say(f"sweep {sweep.id} continues; to abort it: muster sweep abort {sweep.id}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
