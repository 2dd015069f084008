"""A host that is cut off: the record tells from whom, and when in the life of a group it happened."""

from muster.model import Verdict
from muster_coordinator.model.sweep_records import Ending


def groups_of(sweep, node):
    return [group for each in sweep.rounds for group in each.groups if node in group.members]


def blamed(group):
    return [(blame.node, blame.reason) for blame in group.blamed]


def others(laboratory, node):
    return [other for other in laboratory.agents if other != node]


def test_a_host_that_the_other_hosts_cannot_reach(laboratory):
    """Its groups never form, whoever has rank 0: it is convicted, with the addresses that could not be reached."""
    laboratory.network.cut("node-3", *others(laboratory, "node-3"))
    sweep = laboratory.sweep()
    (failed,) = sweep.failed_nodes
    assert (failed.node, failed.code) == ("node-3", "collective.failed")
    assert all("cannot be reached" in reason for reason in failed.reasons), failed.reasons
    assert {group.ending for group in groups_of(sweep, "node-3")} == {Ending.NOT_FORMED}
    assert sweep.inconclusive == ()


def test_a_host_that_is_cut_off_from_the_other_hosts_while_its_group_runs(laboratory):
    """Both sides of the first group wait in vain, and afterwards none can be formed with it: it is convicted."""
    with laboratory.halted_in_a_sweep("node-4") as going_on:
        laboratory.network.cut("node-4", *others(laboratory, "node-4"))
    sweep = laboratory.ended_sweep(going_on)
    (failed,) = sweep.failed_nodes
    assert (failed.node, failed.code) == ("node-4", "collective.failed")
    first, *later = groups_of(sweep, "node-4")
    assert (first.ending, sorted(blamed(first))) == (
        Ending.FINISHED,
        [(it, "run.raised") for it in sorted(first.members)],
    )
    assert {group.ending for group in later} == {Ending.NOT_FORMED}
    assert sweep.inconclusive == ()


def test_a_host_that_is_cut_off_from_everybody_before_its_group_forms(laboratory):
    """It does not answer the invitation, which proves nothing: it is inconclusive, and its partner is cleared."""
    laboratory.network.cut("node-3", "coordinator", *others(laboratory, "node-3"))
    sweep = laboratory.sweep()
    (group,) = groups_of(sweep, "node-3")
    assert group.ending is Ending.NOT_FORMED
    assert blamed(group) in ([("node-3", "silent")], [("node-3", "lost")])  # the heartbeat is missed as well
    assert (sweep.verdict, sweep.inconclusive) == (Verdict.UNKNOWN, ("node-3",))


def test_a_host_that_is_cut_off_from_everybody_while_its_group_runs(laboratory):
    """Its partner waits in vain, it is never heard again, and when invited it says nothing: it is inconclusive."""
    with laboratory.halted_in_a_sweep("node-4") as going_on:
        laboratory.network.cut("node-4", "coordinator", *others(laboratory, "node-4"))
    sweep = laboratory.ended_sweep(going_on)
    group, *later = groups_of(sweep, "node-4")
    assert group.ending is Ending.ABORTED
    assert {("node-4", "silent"), ("node-4", "lost")}.intersection(blamed(group))  # its heartbeat is missed as well
    assert {place.verdict for place in group.places} == {None, Verdict.UNKNOWN}
    assert all(group.ending is Ending.NOT_FORMED for group in later)
    assert (sweep.verdict, sweep.inconclusive) == (Verdict.UNKNOWN, ("node-4",))


def test_a_host_that_is_cut_off_from_the_broker_only(laboratory):
    """Its partner measures with it to the end, but what it measured itself is missing: it is lost, and inconclusive."""
    with laboratory.halted_in_a_sweep("node-6") as going_on:
        laboratory.network.cut("node-6", "coordinator")
    sweep = laboratory.ended_sweep(going_on)
    (group,) = groups_of(sweep, "node-6")
    assert (group.ending, blamed(group)) == (Ending.ABORTED, [("node-6", "lost")])
    assert {place.node == "node-6": place.verdict for place in group.places} == {True: None, False: Verdict.PASS}
    assert sweep.failed_nodes + sweep.failed_links + sweep.failed_fabric == ()
    assert (sweep.verdict, sweep.inconclusive) == (Verdict.UNKNOWN, ("node-6",))
