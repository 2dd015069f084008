"""Which reports are of no use after another one was deferred."""

from muster.wire.report_head import ReportHead
from muster_coordinator.runtime.deferred_reports import MOST_NODES, DeferredReports


def head(after: int, through: int, stream: str = "s") -> ReportHead:
    return ReportHead(stream, after, through)


def test_a_report_after_a_deferred_one_is_useless_until_the_gap_is_closed() -> None:
    """The agent sends again from the oldest run, whose report begins before the gap."""
    reports = DeferredReports()
    reports.take("n1", head(0, 5))
    reports.defer("n1", head(5, 9))
    assert reports.is_useless("n1", head(9, 11))
    assert not reports.is_useless("n1", head(5, 11))
    reports.take("n1", head(0, 11))
    assert not reports.is_useless("n1", head(11, 12))


def test_the_first_report_of_a_node_may_be_the_deferred_one() -> None:
    """A node that joins an overloaded coordinator."""
    reports = DeferredReports()
    reports.defer("n1", head(0, 1))
    assert reports.is_useless("n1", head(1, 2))
    assert not reports.is_useless("n1", head(0, 2))


def test_a_gap_that_was_not_made_here_is_for_the_fleet_to_refuse() -> None:
    """The broker may lose a report. The acknowledgement of the next one tells the agent at once."""
    reports = DeferredReports()
    reports.take("n1", head(0, 5))
    assert not reports.is_useless("n1", head(9, 11))


def test_runs_that_are_sent_again_do_not_open_a_gap() -> None:
    """An acknowledgement was late: what was taken before still counts."""
    reports = DeferredReports()
    reports.take("n1", head(0, 9))
    reports.defer("n1", head(0, 5))
    assert not reports.is_useless("n1", head(9, 11))
    reports.take("n1", head(0, 5))
    reports.defer("n1", head(9, 11))
    assert not reports.is_useless("n1", head(9, 12))
    assert reports.is_useless("n1", head(11, 12))


def test_a_report_that_is_taken_despite_the_gap_does_not_close_it() -> None:
    """Urgent reports are always taken."""
    reports = DeferredReports()
    reports.defer("n1", head(0, 1))
    reports.take("n1", head(1, 2))
    assert reports.is_useless("n1", head(2, 3))


def test_the_node_that_waits_longest_is_the_first_to_be_invited() -> None:
    """Once for each time that it was deferred; a node whose gap is closed waits no longer."""
    reports = DeferredReports()
    for node in ("n1", "n2", "n3", "n1"):
        reports.defer(node, head(0, 1))
    reports.take("n2", head(0, 1))
    assert [reports.pop() for _ in range(3)] == [("n1", "s"), ("n3", "s"), None]
    reports.defer("n1", head(0, 1))
    assert reports.pop() == ("n1", "s")


def test_nodes_and_streams_have_gaps_of_their_own() -> None:
    """A new outbox starts at 1 again."""
    reports = DeferredReports()
    reports.defer("n1", head(0, 1))
    assert not reports.is_useless("n2", head(1, 2))
    assert not reports.is_useless("n1", head(1, 2, "t"))
    reports.defer("n1", head(3, 4, "t"))
    assert reports.is_useless("n1", head(4, 5, "t"))


def test_reports_of_older_agents_are_never_useless() -> None:
    """They do not say which runs they have."""
    reports = DeferredReports()
    reports.defer("n1", None)
    reports.take("n1", None)
    assert not reports.is_useless("n1", None)
    assert not reports.is_useless("n1", head(5, 6))


def test_made_up_names_take_bounded_memory() -> None:
    """The oldest names go."""
    reports = DeferredReports()
    for number in range(MOST_NODES + 1):
        reports.defer(f"n{number}", head(0, 1))
    assert not reports.is_useless("n0", head(1, 2))
    assert reports.is_useless("n1", head(1, 2))
