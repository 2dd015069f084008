"""What is left of rounds that were laid down beforehand."""

from muster_coordinator.localize.planning.probes import still_to_run
from muster_coordinator.model.probes import GroupRun, Probe, RunOutcome

ROUNDS = [[Probe(pair, "") for pair in pairs] for pairs in ((("a", "b"), ("c", "d")), (("a", "c"), ("b", "d")))]


def left(*runs: str, absent: str = "", rounds: list[list[Probe]] = ROUNDS) -> list[str]:
    done = [GroupRun(group=f"{n}", members=tuple(run), outcome=RunOutcome.VOID) for n, run in enumerate(runs)]
    return ["".join(probe.members) for probe in still_to_run(rounds, done, frozenset(absent))]


def test_one_round_after_the_other() -> None:
    """Also when a budget has cut one short, and when the members of a group were turned round."""
    assert left() == ["ab", "cd"]
    assert left("ba") == ["cd"]
    assert left("ab", "cd") == ["ac", "bd"]
    assert left("ab", "cd", "ac", "bd") == []


def test_groups_with_absent_nodes_are_given_up() -> None:
    """And whoever they leave alone."""
    assert left(absent="a") == ["cd"]
    assert left("cd", absent="a") == ["bd"]
    assert left(absent="ad") == []


def test_the_same_group_may_be_asked_for_again() -> None:
    """It counts as often as it has run."""
    twice = [ROUNDS[0], ROUNDS[0]]
    assert left("ab", "cd", rounds=twice) == ["ab", "cd"]
    assert left("ab", "cd", "ab", rounds=twice) == ["cd"]
    assert left("ab", "cd", "ab", "cd", rounds=twice) == []
