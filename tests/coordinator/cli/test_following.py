"""Following a sweep from the command line to its end."""

import io

import pytest

from muster.client import Client
from muster.errors import Unavailable
from muster_coordinator.cli.following import follow
from muster_coordinator.model.sweep_records import RoundRecord, SweepRecord, SweepState

RUNNING = SweepRecord(
    id="s",
    state=SweepState.RUNNING,
    strategy="pairs",
    check="collective",
    nodes=("n1", "n2"),
    rounds=(RoundRecord(number=1, waiting=1),),
    created_at=0.0,
).model_dump(mode="json")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Vanishing(Client):
    """A coordinator that answers once."""

    def __init__(self):
        self.answers = [RUNNING]

    def get(self, *path, **query):
        if not self.answers:
            raise Unavailable("no coordinator answers")
        return self.answers.pop()


def test_when_the_coordinator_is_gone_the_line_of_progress_stays(monkeypatch):
    """What is said of it begins on a line of its own."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with pytest.raises(Unavailable):
        follow(Vanishing(), RUNNING)
    assert terminal.getvalue().endswith("round 1: 1 group: 1 waiting\n")
