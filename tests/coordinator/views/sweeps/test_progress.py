import io
import os
import termios

import pytest

from muster.model import Verdict
from muster_coordinator.model.sweep_records import Blame, Ending, GroupState, RoundRecord
from muster_coordinator.views.sweeps.progress import News, SweepProgress, round_line

FORMING = {"state": GroupState.FORMING, "ending": None, "verdict": None}
RUNNING = {"state": GroupState.RUNNING, "ending": None, "verdict": None}
BROKEN = {"ending": Ending.NOT_FORMED, "verdict": Verdict.UNKNOWN}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stages(group, sweep):
    """A sweep of eight pairs while they end one after the other; the last one fails."""
    ended = [group(f"a{number}", f"b{number}", at=10.0) for number in range(7)]
    ended.append(group("a7", "b7", verdict=Verdict.FAIL))
    running = [it.model_copy(update={**RUNNING, "places": ()}) for it in ended]
    return [sweep([*ended[:number], *running[number:]], ended_at=60.0 if number == 8 else None) for number in range(9)]


def test_a_round_in_one_line(group):
    """How many groups there are, and what has become of how many."""
    groups = (
        group("n1", "n2", at=1.0),
        group("n3", "n4", verdict=Verdict.WARN),
        group("n5", "n6", verdict=Verdict.FAIL),
        group("n7", "n8", **BROKEN),
        group("n9", "n10", **RUNNING),
        group("n11", "n12", **FORMING),
        group("n13", "n14", **(FORMING | {"state": GroupState.ELECTED})),
    )
    line = round_line(RoundRecord(number=2, groups=groups))
    assert line == "round 2: 7 groups: 2 passed, 1 failed, 1 without result, 1 running, 2 forming"
    assert round_line(RoundRecord(number=1, waiting=2)) == "round 1: 2 groups: 2 waiting"


def test_only_what_is_not_a_plain_pass_has_a_line_of_its_own(stages):
    """Once."""
    news = News()
    told = [line for stage in (*stages, stages[-1]) for line in news.groups(stage)]
    assert told == ["round 1: a7 + b7: FAIL"]


def test_a_group_that_is_found_to_be_slow_later_has_its_line_then(group, sweep):
    """Once, although it had passed before."""
    news, passed = News(), group("n1", "n2", at=1.0)
    slow = passed.model_copy(update={"verdict": Verdict.FAIL})
    told = [news.groups(sweep([it])) for it in (passed, slow, slow)]
    assert told == [[], ["round 1: n1 + n2: FAIL 1 GB/s"], []]


def test_hundreds_of_groups_make_few_lines(group, sweep):
    """A line when another tenth has ended, and the last one has all of them."""
    ended = [group(f"a{number}", f"b{number}", at=10.0) for number in range(300)]
    running = [it.model_copy(update={**RUNNING, "places": ()}) for it in ended]
    news, lines = News(), []
    for number in range(301):
        lines += news.lines(sweep([*ended[:number], *running[number:]]))
    assert len(lines) == 11
    assert lines[-1] == "round 1: 300 groups: 300 passed"


def test_a_file_gets_whole_lines(stages):
    """Without anything that only a terminal understands."""
    out = io.StringIO()
    progress = SweepProgress(out)
    for stage in stages:
        progress.show(stage)
    progress.leave()
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().splitlines()[-2:] == [
        "round 1: a7 + b7: FAIL",
        "round 1: 8 groups: 7 passed, 1 failed",
    ]


def test_on_a_terminal_the_line_changes_in_its_place(stages):
    """Only lines that stay end with a line feed."""
    out = Terminal()
    progress = SweepProgress(out)
    for stage in stages:
        progress.show(stage)
    kept = [line.rsplit("\r\x1b[K", 1)[-1] for line in out.getvalue().split("\n")[:-1]]
    assert kept == ["round 1: a7 + b7: FAIL", "round 1: 8 groups: 7 passed, 1 failed"]
    assert "\r\x1b[Kround 1: 8 groups: 3 passed, 5 running\r" in out.getvalue()


class Pty(Terminal):
    def __init__(self, descriptor):
        super().__init__()
        self._descriptor = descriptor

    def fileno(self):
        return self._descriptor


def test_a_line_is_cut_where_the_terminal_that_shows_it_ends(stages):
    """That of the progress, not that of stdout, which may be a file; what wraps could not be overwritten."""
    ours, theirs = os.openpty()
    try:
        termios.tcsetwinsize(theirs, (24, 20))
        out = Pty(theirs)
        SweepProgress(out).show(stages[3])
    finally:
        os.close(ours)
        os.close(theirs)
    assert out.getvalue() == "\r\x1b[K" + "round 1: 8 groups: 3 passed, 5 running"[:19]


def test_what_nodes_report_does_not_command_the_terminal(group, sweep):
    """Their programs may print colours."""
    blame = Blame(node="n1", reason="run.exited", detail="\x1b[31mfailed")
    for out in (Terminal(), io.StringIO()):
        SweepProgress(out).show(sweep([group("n1", "n2", verdict=Verdict.UNKNOWN, blamed=(blame,))]))
        assert "(\ufffd[31mfailed)" in out.getvalue()


def test_a_finished_round_keeps_its_line(group, sweep):
    """And the next one begins below it."""
    out = Terminal()
    progress = SweepProgress(out)
    first = [group("n1", "n2", at=1.0)]
    progress.show(sweep([group("n1", "n2", **RUNNING)], ended_at=None))
    progress.show(sweep(first, [group("n3", "n4", **RUNNING)], ended_at=None))
    progress.leave()
    kept = [line.rsplit("\r\x1b[K", 1)[-1] for line in out.getvalue().split("\n")[:-1]]
    assert kept == ["round 1: 1 group: 1 passed", "round 2: 1 group: 1 running"]


def test_a_sweep_without_rounds_shows_nothing(sweep):
    """It still waits for its nodes."""
    out = Terminal()
    SweepProgress(out).show(sweep(ended_at=None))
    assert out.getvalue() == ""
