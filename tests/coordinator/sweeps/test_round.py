"""One round while it goes on."""

from muster_coordinator.model.orders import Orders
from muster_coordinator.sweeps.formation import Formation, GroupTask
from muster_coordinator.sweeps.group import Group
from muster_coordinator.sweeps.group_events import MemberLost
from muster_coordinator.sweeps.rounds import Round

TASK = GroupTask(check="c", params={}, timeout_s=20.0, objective=None, cause="s")
PAIR, SOLO = Formation(("a", "b"), "by lot"), Formation(("c",), "alone")


def group(formation: Formation) -> Group:
    return Group("s-1.1", TASK, formation.members, (formation.reason,), Orders(1), 0.0)


def test_a_round_is_over_when_nothing_waits_or_lives() -> None:
    """What has waited lives, and what has ended may wait again, with other members."""
    stage = Round([PAIR, SOLO], ["y", "c", "a", "x", "b"])
    assert [*stage.unused] == ["y", "x"]
    living = group(PAIR)
    stage.begin(living, PAIR)
    assert ([*stage.waiting], stage.nodes_in_groups, stage.nodes_invited) == ([SOLO], 2, 2)
    assert (stage.live_with("b"), stage.live_with("c")) == (living, None)
    assert (stage.waiting_with("b"), stage.waiting_with("c")) == (None, SOLO)
    assert stage.waiting_nodes == {"c"}
    stage.drop(SOLO)
    assert not stage.is_over
    assert stage.end(living) is PAIR
    assert stage.is_over
    assert (stage.waiting_nodes, stage.nodes_in_groups, stage.live_with("a")) == (set(), 0, None)
    stage.wait(Formation(("a", "x"), "again"))
    assert not stage.is_over
    assert [*stage.unused] == ["y"]
    assert stage.waiting_nodes == {"a", "x"}


def test_only_groups_that_are_being_formed_have_nodes_that_are_invited() -> None:
    """One that has ended has none."""
    stage = Round([PAIR])
    living = group(PAIR)
    stage.begin(living, PAIR)
    stage.note_answered(living)
    assert stage.nodes_invited == 2
    living.handle(MemberLost("a"), 1.0)
    for _ in range(2):
        stage.note_answered(living)
    assert (stage.nodes_invited, stage.nodes_in_groups) == (0, 2)


def test_a_node_alone_is_no_group_that_shares_links() -> None:
    """Only live groups of several nodes count."""
    stage = Round([PAIR, SOLO])
    pair, solo = group(PAIR), Group("s-1.2", TASK, SOLO.members, (SOLO.reason,), Orders(1), 0.0)
    counts = []
    for step in (
        lambda: stage.begin(pair, PAIR),
        lambda: stage.begin(solo, SOLO),
        lambda: stage.end(solo),
        lambda: stage.end(pair),
    ):
        step()
        counts.append(stage.live_together)
    assert counts == [1, 1, 1, 0]
