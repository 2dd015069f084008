"""A list that is shown again and again."""

import os
from types import SimpleNamespace

import pytest

from muster.errors import Unavailable
from muster_coordinator.cli import polling, watching


def watched(monkeypatch, *answers):
    """Watches until the answers are used up, which ends it as Ctrl-C does; returns the pauses."""
    pauses, left = [], list(answers)

    def sleep(seconds):
        pauses.append(seconds)
        if not left:
            raise KeyboardInterrupt

    def make():
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    # Not in the module `time`, which the test runner uses, too.
    clock = SimpleNamespace(sleep=sleep, monotonic=lambda: 0.0)
    monkeypatch.setattr(watching, "time", clock)
    monkeypatch.setattr(polling, "time", clock)
    watching.watch(make)
    return pauses


def test_in_a_pipe_one_text_follows_the_other(monkeypatch, capsys):
    """Without codes for a terminal; Ctrl-C is the way to end it, and no error."""
    assert watched(monkeypatch, "one", "two") == [watching.WATCH_S] * 2
    assert capsys.readouterr().out == "one\n\ntwo\n\n"


def test_while_the_coordinator_is_away_the_last_text_stays(monkeypatch, capsys):
    """With the reason; it goes on when the coordinator is back."""
    watched(monkeypatch, "one", Unavailable("no coordinator answers"), "two")
    assert capsys.readouterr().out == "one\n\nno coordinator answers\none\n\ntwo\n\n"


def test_a_terminal_shows_what_fits(monkeypatch, capsys):
    """In place of the text before: the first lines, which are the worst, and how many more there are."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    size = os.terminal_size((80, 4))
    monkeypatch.setattr(watching, "shutil", SimpleNamespace(get_terminal_size=lambda: size))
    watched(monkeypatch, "\n".join("abcdefg"), "a\nb\nc")
    assert capsys.readouterr().out == "\x1b[H\x1b[2Ja\nb\n… 5 more lines\n\x1b[H\x1b[2Ja\nb\nc\n"


def test_a_slow_answer_makes_the_pause_longer(monkeypatch):
    """Queries take at most a fifth of the time: one of 3 s is followed by 12 s without any."""
    pauses: list[float] = []
    monkeypatch.setattr(polling, "time", SimpleNamespace(sleep=pauses.append, monotonic=lambda: 103.0))
    polling.pause(100.0, least_s=2.0)
    polling.pause(102.9, least_s=2.0)
    assert pauses == pytest.approx([12.0, 2.0])
