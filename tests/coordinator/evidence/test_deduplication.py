"""Which runs of a report are taken."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model import Run, Verdict
from muster.wire.messages import Report
from muster_coordinator.evidence.deduplication import Intake, take


def run(seq: int) -> Run:
    return Run(id=f"r{seq}", node="n", check="gemm", verdict=Verdict.PASS, started_at=1.0, duration_s=0.1, seq=seq)


def report(*numbers: int, after: int = 0) -> Report:
    return Report(id="m", sent_at=1.0, node="n", stream="s", after=after, runs=tuple(map(run, numbers)))


def test_what_follows_on_is_taken() -> None:
    """A report that begins where the stream ends is taken whole."""
    assert take(report(4, 5, after=3), 3) == Intake((run(4), run(5)), 5)


def test_numbers_that_the_node_gave_up_are_no_gap() -> None:
    """`after` 0 says that nothing before is kept, so nothing before can come any more."""
    assert take(report(9), 3) == Intake((run(9),), 9)


def test_what_was_taken_is_a_duplicate() -> None:
    """Only the part above what was taken is new."""
    assert take(report(2, 3, 4), 3) == Intake((run(4),), 4, duplicates=2)
    assert take(report(2, 3), 5) == Intake((), 5, duplicates=2)


def test_a_gap_is_not_taken() -> None:
    """A report that leaves out what the node still keeps changes nothing."""
    assert take(report(6, after=5), 3) == Intake((), 3, gap=True)


@given(st.data())
def test_every_kept_run_is_taken_once_and_in_order(data: st.DataObject) -> None:
    """However batches are cut, lost, repeated and reordered, sending from the oldest kept one completes the stream."""
    kept = sorted(data.draw(st.sets(st.integers(1, 30), min_size=1)))
    through, taken = 0, []
    for _ in range(data.draw(st.integers(0, 8))):
        first = data.draw(st.integers(0, len(kept) - 1))
        batch = kept[first : first + data.draw(st.integers(1, 5))]
        intake = take(report(*batch, after=kept[first - 1] if first else 0), through)
        taken += [each.seq for each in intake.fresh]
        through = intake.through
    taken += [each.seq for each in take(report(*kept), through).fresh]
    assert taken == kept
