"""How a group that could not be formed is formed again."""

import pytest
from tests.cases import cases

from muster_coordinator.model.probes import Probe
from muster_coordinator.model.sweep_records import Blame
from muster_coordinator.sweeps.formation import MAX_REFORMED, Formation, form_again, formations, without

TRIO = Formation(("a", "b", "c"), "by lot", by_rail=True)


def nobody(node: str) -> None:
    """There are no spares."""


def blame(**reasons: str) -> list[Blame]:
    return [Blame(node=node, reason=reason) for node, reason in reasons.items()]


@pytest.mark.parametrize(
    ("formation", "blamed", "members", "reason"),
    [
        (TRIO, {"b": "busy"}, ("a", "c"), "formed again without b (busy)"),
        (TRIO, {"a": "unreachable"}, ("b", "c", "a"), "nobody could reach a as rank 0"),
        (TRIO, {"c": "unreachable"}, ("a", "b"), "formed again without c (unreachable)"),
        (Formation(("a", "b"), "by lot"), {"a": "unreachable"}, ("b", "a"), "nobody could reach a as rank 0"),
    ],
)
def test_it_does_without_who_was_to_blame(
    formation: Formation, blamed: dict[str, str], members: tuple[str, ...], reason: str
) -> None:
    """Or with another rank 0, if nobody could reach the first."""
    again = form_again(formation, blame(**blamed), nobody)
    assert again is not None
    assert (again.members, again.reason, again.by_rail) == (members, reason, formation.by_rail)


@cases(
    ("formation", "blamed"),
    [
        (Formation(("a",), "alone"), {"a": "busy"}),
        (Formation(("a",), "alone"), {"a": "unreachable"}),
        (Formation(("a", "b"), "by lot"), {"a": "busy"}),
        (Formation(("a", "b"), "by lot", turned=True), {"a": "unreachable"}),
        (Formation(("a", "b"), "by lot"), {"b": "unreachable"}),
        (Formation(("a", "b", "c"), "by lot", reformed=MAX_REFORMED), {"a": "busy"}),
    ],
)
def test_it_rests_when_that_is_no_group(formation: Formation, blamed: dict[str, str]) -> None:
    """A node alone has nobody to turn round with, and what was tried both ways or too often is not tried again."""
    assert form_again(formation, blame(**blamed), nobody) is None


def test_a_spare_takes_the_place_of_who_is_missing() -> None:
    """In the order of the ranks, and the reason names both."""
    again = without(TRIO, {"b": "lost", "c": "lost"}, {"b": "x"}.get)
    assert again is not None
    assert (again.members, again.reason) == (("a", "x"), "without b (lost), c (lost); x stands in for b")


def test_losses_while_it_waits_do_not_count_as_attempts() -> None:
    """Only a group that was being formed has kept others from work."""
    waiting = Formation(tuple("abcdefg"), "all")
    for node in "abcd":
        left = without(waiting, {node: "lost"}, nobody)
        assert left is not None
        waiting = left
    assert (waiting.members, waiting.reformed) == (("e", "f", "g"), 0)


def test_a_probe_is_what_is_to_be_formed() -> None:
    """With its reason and the way in which it exchanges."""
    assert formations([Probe(("a", "b", "c"), "by lot", by_rail=True)]) == [TRIO]
