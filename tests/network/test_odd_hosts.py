"""Hosts on a healthy network with whom something else is wrong."""

from muster.model import Verdict
from muster_coordinator.model.sweep_records import Ending

HOUR_S = 3600


def notes_about(what, sweep):
    """The notes with this word. On a busy machine there may be others, such as one about a pair that was slow once."""
    return [note for note in sweep.notes if what in note]


def test_a_host_with_fewer_devices_than_declared(laboratory):
    """It declines before any rank starts, with what it has and what it should have; the others are cleared."""
    laboratory.change_agent("node-1", expected_gpus=2)
    sweep = laboratory.sweep()
    (group,) = (group for group in sweep.rounds[0].groups if "node-1" in group.members)
    assert group.ending is Ending.NOT_FORMED
    assert [(it.node, it.reason, it.detail) for it in group.blamed] == [
        ("node-1", "too_few_devices", "2 expected, 1 there")
    ]
    assert (sweep.verdict, sweep.inconclusive) == (Verdict.UNKNOWN, ("node-1",))


def test_a_rank_that_is_killed_once(laboratory):
    """Its node is to blame and not its partner. A crash that does not come again convicts nobody, but is told."""
    with laboratory.halted_in_a_sweep("node-2") as going_on:
        (rank,) = laboratory.agents["node-2"].ranks
        rank.kill()
    sweep = laboratory.ended_sweep(going_on)
    (group,) = (group for group in sweep.rounds[0].groups if "node-2" in group.members)
    assert [(it.node, it.reason) for it in group.blamed] == [("node-2", "run.killed")]
    assert (sweep.verdict, sweep.cleared_nodes) == (Verdict.PASS, sweep.nodes)
    (note,) = notes_about("SIGKILL", sweep)
    assert "node-2" in note


def test_a_host_whose_clock_is_off_by_an_hour(laboratory):
    """It takes part as everybody else, since nothing depends on its clock, and the record says how far that is off."""
    laboratory.change_agent("node-4", clock_off_by_s=HOUR_S)
    sweep = laboratory.sweep()
    assert (sweep.verdict, sweep.cleared_nodes) == (Verdict.PASS, sweep.nodes)
    (note,) = notes_about("clock", sweep)
    assert "node-4" in note and "3600 s" in note
