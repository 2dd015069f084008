"""Which nodes of a job go on, by what their runs alone, in pairs and together have shown."""

import random
import time
from collections.abc import Callable

from tests.cases import cases

from muster.acceptance import GangDecision
from muster.model import Finding, Run, Severity, Verdict
from muster_agent.acceptance.gang import MOST_ROUNDS, GangSelection, NodePair
from muster_agent.decide.findings import lost

CHECK = "collective"


def run_of(node: str, verdict: Verdict, *findings: Finding) -> Run:
    return Run(
        id=node, node=node, check=CHECK, verdict=verdict, findings=findings, started_at=time.time(), duration_s=0.0
    )


def slow(node: str) -> Run:
    """A run with a finding."""
    return run_of(node, Verdict.FAIL, Finding(code="collective.slow", summary="too slow", severity=Severity.ERROR))


def passed(node: str) -> Run:
    return run_of(node, Verdict.PASS)


def pairs_tested(selection: GangSelection, verdict: Callable[[str, str], Verdict]) -> list[list[NodePair]]:
    """Runs all pairs that the selection asks for, with the verdict of each; returns the rounds."""
    rounds = []
    selection.begin_pairs(CHECK)
    while pairs := selection.next_pairs():
        rounds.append(pairs)
        selection.note_pairs((pair, [run_of(node, verdict(*pair)) for node in pair]) for pair in pairs)
    selection.end_pairs()
    return rounds


def failing(*bad: str) -> Callable[[str, str], Verdict]:
    """Pairs fail that have a bad node, or are themselves bad, such as `ab`."""

    def verdict(node: str, partner: str) -> Verdict:
        bad_pair = "".join(sorted(node + partner)) in bad
        return Verdict.FAIL if bad_pair or node in bad or partner in bad else Verdict.PASS

    return verdict


def decisions(selection: GangSelection) -> str:
    """The first letter of each node's decision, such as GGRS."""
    return "".join(each.decision[0] for each in selection.conclusions())


@cases(
    "nodes, bad, expected, rounds",
    [
        ("ab", [], "GG", 1),
        ("abcd", [], "GGGG", 1),
        ("abcde", [], "GGGGG", 2),
        ("abc", ["a"], "RBB", 3),
        ("abcd", ["a"], "RBBB", 2),
        ("abcd", ["d"], "BBBR", 2),
        ("abcdef", ["b", "e"], "BRBBRB", 3),
        ("abcdef", ["a", "b"], "RRBBBB", 3),
        ("abcd", ["ab"], "GGGG", 2),
    ],
)
def test_bad_nodes_are_told_from_their_partners(nodes, bad, expected, rounds):
    """By partners that passed with others; a bad path alone rejects no node."""
    selection = GangSelection(nodes, len(nodes))
    assert len(pairs_tested(selection, failing(*bad))) == rounds
    assert decisions(selection) == expected


def test_bad_nodes_are_found_in_gangs_of_any_size():
    """If at most a quarter of the nodes is bad: all of them and no other, in three rounds."""
    chance = random.Random(1)
    for _ in range(300):
        nodes = [f"node-{number}" for number in range(chance.randint(3, 40))]
        bad = chance.sample(nodes, min(3, len(nodes) // 4))
        selection = GangSelection(nodes, 1)
        assert len(pairs_tested(selection, failing(*bad))) <= 3
        rejected = [each.node for each in selection.conclusions() if each.decision is GangDecision.REJECTED]
        assert sorted(rejected) == sorted(bad)


@cases("nodes, bad", [("ab", ["a"]), ("abc", ["a", "b"]), ("abcd", ["a", "b", "c"])])
def test_nothing_is_guessed(nodes, bad):
    """Where no partner is known to be good, the nodes of failed pairs are UNKNOWN, and all are named."""
    selection = GangSelection(nodes, 1)
    pairs_tested(selection, failing(*bad))
    for each in selection.conclusions():
        assert (each.decision, each.verdict) == (GangDecision.REJECTED, Verdict.UNKNOWN)
        assert "too few other nodes could tell" in each.reason


def test_a_rejected_node_is_named_with_those_it_failed_with():
    """The reason is what a person reads first."""
    selection = GangSelection("abcd", 3)
    pairs_tested(selection, failing("a"))
    (rejected, *others) = selection.conclusions()
    assert (rejected.verdict, rejected.reason) == (Verdict.FAIL, "collective did not pass with b nor with c")
    assert {each.decision for each in others} == {GangDecision.GO}


def test_the_job_goes_on_with_a_spare():
    """The nodes without warnings come first, and then the order of ranks decides."""
    selection = GangSelection("abcde", 2)
    selection.note_alone([run_of("a", Verdict.WARN), slow("b"), *map(passed, "cde")])
    pairs_tested(selection, failing())
    assert selection.chosen == ["c", "d"]
    assert decisions(selection) == "SRGGS"


def test_a_node_with_a_warning_goes_on_if_it_is_needed():
    """A warning does not stop a job."""
    selection = GangSelection("abc", 3)
    selection.note_alone([run_of("a", Verdict.WARN), *map(passed, "bc")])
    pairs_tested(selection, failing())
    assert decisions(selection) == "GGG"
    assert selection.conclusions()[0].verdict is Verdict.WARN


def test_the_later_node_of_a_bad_path_is_chosen_last():
    """So the job does not run over a path that was slow, if there is a spare."""
    selection = GangSelection("abcd", 3)
    pairs_tested(selection, failing("ab"))
    assert selection.chosen == ["a", "c", "d"]


def test_too_few_nodes_block_the_others():
    """Each is told how many there were."""
    selection = GangSelection("ab", 2)
    selection.note_alone([slow("a"), passed("b")])
    rejected, blocked = selection.conclusions()
    assert (rejected.decision, rejected.reason) == (GangDecision.REJECTED, "collective: too slow")
    assert (blocked.decision, blocked.reason) == (GangDecision.BLOCKED, "the job needs 2 nodes, and 1 passed")


@cases("verdict", [Verdict.UNKNOWN, Verdict.SKIPPED])
def test_a_pair_that_measured_nothing_clears_nobody(verdict):
    """Absence of a measurement is not health."""
    selection = GangSelection("ab", 2)
    pairs_tested(selection, lambda *_: verdict)
    assert [each.verdict for each in selection.conclusions()] == [Verdict.UNKNOWN] * 2


def test_the_partner_of_a_lost_node_is_paired_again():
    """Its own run ended early, which says nothing about it."""
    selection = GangSelection("abc", 2)
    assert selection.next_pairs() == [("a", "b")]
    selection.note_pairs([(("a", "b"), [run_of("a", Verdict.SKIPPED), run_of("b", Verdict.UNKNOWN, lost(1))])])
    assert selection.next_pairs() == [("a", "c")]
    selection.note_pairs([(("a", "c"), [passed("a"), passed("c")])])
    assert decisions(selection) == "GRG"


def test_a_node_that_is_lost_in_the_group_is_replaced():
    """The group check is then repeated with the spare."""
    selection = GangSelection("abc", 2)
    pairs_tested(selection, failing())
    assert selection.chosen == ["a", "b"]
    assert selection.note_together([run_of("a", Verdict.SKIPPED), run_of("b", Verdict.UNKNOWN, lost(1))])
    assert selection.chosen == ["a", "c"]
    assert not selection.note_together([passed("a"), passed("c")])
    assert decisions(selection) == "GRG"


def test_a_group_that_fails_blocks_the_job_and_indicts_nobody():
    """All pairs had passed, so no node is known to be bad."""
    selection = GangSelection("abc", 2)
    pairs_tested(selection, failing())
    assert not selection.note_together([slow("a"), slow("b")])
    for each in selection.conclusions():
        assert (each.decision, each.verdict) == (GangDecision.BLOCKED, Verdict.PASS)
        assert each.reason == "the chosen nodes did not pass together: collective: too slow"


def test_rounds_are_bounded():
    """If every pair fails, the network is bad, and more pairs would tell nothing new."""
    selection = GangSelection([f"node-{number}" for number in range(40)], 40)
    assert len(pairs_tested(selection, lambda *_: Verdict.FAIL)) == MOST_ROUNDS


def test_a_second_group_check_pairs_the_nodes_again():
    """What one check has shown says nothing about another."""
    selection = GangSelection("abcd", 3)
    pairs_tested(selection, failing("a"))
    assert pairs_tested(selection, failing()) == [[("b", "c")], [("d", "b")]]
    assert decisions(selection) == "RGGG"
