"""What a sweep does with suspects of earlier sweeps."""

from tests.coordinator.localize.past_sweeps import bad, before, known
from tests.coordinator.localize.runs import fleet, ran

from muster_coordinator.localize.planning.suspects import SUSPECT_RUNS
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.model.probes import GroupRun, Probe

SITES = fleet(64, leaf_of=8, places_itself=False)
CLEARED = " ".join(SITES)
PRIOR = known(before(1, bad("n0", "n8"), bad("n8", "n0"), cleared=CLEARED), doubted="n1 n2 n3 n4 n5")


def strategy(seed: str = "s") -> Adaptive:
    return Adaptive(SITES, seed=seed, prior=PRIOR)


def with_node(probes: list[Probe], node: str) -> Probe:
    (found,) = (probe for probe in probes if node in probe.members)
    return found


def test_suspects_run_first_beside_partners_that_were_good() -> None:
    """Not with each other, not with a node that background checks doubt, and every node runs once all the same."""
    for seed in "abcdefgh":
        first = strategy(seed).next_groups((), frozenset())
        assert sorted(node for probe in first for node in probe.members) == sorted(SITES)
        probe = with_node(first, "n0")
        assert set(probe.members) <= {"n0", "n6", "n7"}, "a good partner of its own leaf"
        assert "n0 is suspected since sweep s1 and runs with" in probe.reason
        assert with_node(first, "n8") is not probe


def test_an_absent_suspect_waits() -> None:
    """The sweep goes on without it."""
    first = strategy().next_groups((), frozenset({"n0"}))
    assert sorted(node for probe in first for node in probe.members) == sorted(SITES.keys() - {"n0"})


def test_suspects_run_again_while_the_suspicion_is_open() -> None:
    """With other partners, up to a limit; then the sweep is over."""
    runs: list[GroupRun] = []
    while probes := strategy().next_groups(tuple(runs), frozenset()):
        runs += [ran(*probe.members) for probe in probes]
    assert sum("n0" in run.members for run in runs) in range(2, SUSPECT_RUNS + 1)
    assert sum("n20" in run.members for run in runs) == 1


def test_without_suspects_a_prior_changes_nothing() -> None:
    """The groups are the same as without any."""
    prior = known(before(1, cleared=CLEARED))
    assert Adaptive(SITES, seed="s", prior=prior).next_groups((), frozenset()) == Adaptive(SITES, seed="s").next_groups(
        (), frozenset()
    )


def test_doubted_nodes_are_no_partners_of_suspects() -> None:
    """Of the suspects of this sweep, too, unless there are no others."""
    bad_pair = [
        ran("n0", "n32", at=0.5),
        ran("n62", "n63"),
        *(ran(f"n{number}", f"n{number + 32}") for number in range(1, 32)),
    ]
    for names in (CLEARED, " ".join(SITES.keys() - {"n1", "n9"})):
        planner = Adaptive(SITES, seed="s", prior=known(doubted=names))
        partners = {node for probe in planner.next_groups(bad_pair, frozenset()) for node in probe.members}
        assert partners - {"n0", "n32"} == {"n1", "n9"} or names == CLEARED
        assert len(partners) == 4
