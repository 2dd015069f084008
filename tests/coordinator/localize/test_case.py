"""Who is at fault."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from muster_coordinator.localize.case import Case
from muster_coordinator.localize.trial import Outcome, Trial

NODES = ("a", "b", "c", "d", "e", "f")
_numbers = itertools.count()


def ran(*members: str, at: float) -> Trial:
    """A trial that went well at `at` GB/s."""
    return Trial(group=f"g{next(_numbers)}", members=members, outcome=Outcome.GOOD, objective=at)


def failed(*members: str, crashed: tuple[str, ...] = (), hard: bool = False) -> Trial:
    return Trial(
        group=f"g{next(_numbers)}",
        members=members,
        outcome=Outcome.BAD,
        crashed=frozenset(crashed),
        hard=hard or bool(crashed),
        detail="wrong elements",
    )


def void(*members: str) -> Trial:
    return Trial(group=f"g{next(_numbers)}", members=members, outcome=Outcome.VOID)


def case(*trials: Trial, nodes: tuple[str, ...] = NODES) -> Case:
    return Case(nodes, trials, "busbw_gbps")


def convicted(found: Case) -> dict[tuple[str, ...], float]:
    return {conviction.of: conviction.confidence for conviction in found.failed_nodes}


def test_no_evidence_leaves_everything_open() -> None:
    """Without trials, or with void ones only, nobody is cleared, suspected or convicted."""
    found = case(void("a", "b"))
    assert (found.open, dict(found.cleared), found.suspects, found.failed_nodes) == (NODES, {}, (), ())


def test_a_bad_pair_makes_two_suspects_and_convicts_nobody() -> None:
    """Membership alone is no evidence."""
    found = case(ran("a", "b", at=0.1), ran("c", "d", at=1.4), ran("e", "f", at=1.6))
    assert found.suspects == ("a", "b")
    assert found.failed_nodes == ()
    assert list(found.cleared) == ["c", "d", "e", "f"]


def test_the_second_round_tells_the_bad_node_from_its_partner() -> None:
    """Slow with everyone is convicted, with the numbers; its partner is cleared by another."""
    found = case(
        ran("a", "b", at=0.11),
        ran("c", "d", at=1.4),
        ran("e", "f", at=1.6),
        ran("c", "a", at=0.13),
        ran("e", "b", at=1.5),
    )
    (conviction,) = found.failed_nodes
    assert (conviction.of, conviction.slow, conviction.confidence) == (("a",), True, 0.75)
    assert conviction.reasons == (
        "busbw 0.11 GB/s with b (which passed at 1.5 GB/s), 0.13 GB/s with c (which passed at 1.4 GB/s);"
        " typical here is 1.5 GB/s",
    )
    assert found.open == ()


def test_two_bad_nodes_in_one_pair_are_both_found() -> None:
    """Neither clears the other; each is convicted by its own passed partner, with less confidence."""
    found = case(
        ran("a", "b", at=0.1),
        ran("c", "d", at=1.4),
        ran("e", "f", at=1.6),
        ran("c", "a", at=0.1),
        ran("e", "b", at=0.1),
    )
    assert convicted(found) == {("a",): 0.5, ("b",): 0.5}


def test_one_bad_trial_with_a_passed_partner_may_be_the_link() -> None:
    """A node that has met only one partner is not convicted before it has met another."""
    trials = [ran("a", "b", at=1.5), ran("c", "d", at=1.5), ran("a", "e", at=0.1)]
    found = case(*trials, nodes=NODES[:5])
    assert (found.suspects, found.failed_nodes) == (("e",), ())
    (pairing,) = found.next_pairs(set())
    assert pairing.members == ("b", "e")
    assert convicted(case(*trials, ran("b", "e", at=0.1), nodes=NODES[:5])) == {("e",): 0.75}


def test_hard_evidence_weighs_more() -> None:
    """A FAIL verdict or a crash of the node's own ranks leaves a fifth of the doubt."""
    others = (ran("c", "d", at=1.4), ran("e", "f", at=1.6))
    assert convicted(case(*others, failed("a", "b", hard=True), failed("c", "a", hard=True), ran("e", "b", at=1))) == {
        ("a",): 0.96
    }


def test_a_crash_charges_only_whose_ranks_crashed() -> None:
    """Its partner is free of suspicion, and one passed partner suffices to convict."""
    found = case(failed("a", "b", crashed=("b",)), ran("c", "d", at=1), ran("c", "b", at=1))
    assert found.suspects == ()
    found = case(ran("c", "d", at=1), failed("c", "b", crashed=("b",)))
    assert convicted(found) == {("b",): 0.8}
    assert found.failed_nodes[0].reasons == ("with c (which passed at 1 GB/s): wrong elements",)


def test_a_crash_takes_back_an_earlier_clearance() -> None:
    """A node that passed and then crashed by itself is open again, and whoever was with it is not charged."""
    found = case(ran("a", "b", at=1), failed("a", "c", crashed=("a",)), nodes=("a", "b", "c"))
    assert (list(found.cleared), found.suspects, found.open) == (["b"], ("a",), ("a", "c"))


def test_a_node_alone_is_convicted_by_its_own_evidence() -> None:
    """In a single sweep, FAIL and far too slow convict."""
    found = case(failed("a", hard=True), ran("b", at=0.1), ran("c", at=1.5), ran("d", at=1.5), nodes=NODES[:4])
    assert convicted(found) == {("a",): 0.8, ("b",): 0.5}
    assert found.failed_nodes[0].reasons == ("alone: wrong elements",)


def test_a_whole_group_that_fails_convicts_nobody() -> None:
    """All its members are suspects."""
    found = case(failed(*NODES))
    assert (found.suspects, found.failed_nodes, found.open) == (NODES, (), NODES)


def test_a_bad_link_between_good_nodes_is_confirmed_once() -> None:
    """Bad again convicts the link; good again is only noted; the nodes stay cleared either way."""
    trials = [
        ran("a", "b", at=0.1),
        ran("c", "d", at=1.4),
        ran("e", "f", at=1.6),
        ran("c", "a", at=1.5),
        ran("e", "b", at=1.5),
    ]
    found = case(*trials)
    assert [pairing.members for pairing in found.next_pairs(set())] == [("a", "b")]
    assert found.next_pairs({"b"}) == ()
    again = case(*trials, ran("a", "b", at=0.12))
    (link,) = again.failed_links
    assert (link.of, link.slow, link.confidence) == (("a", "b"), True, 0.75)
    assert (again.next_pairs(set()), again.failed_nodes, again.open) == ((), (), ())
    well = case(*trials, ran("a", "b", at=1.4))
    assert (well.failed_links, well.intermittent_links, well.next_pairs(set())) == ((), (("a", "b"),), ())


def test_slowness_needs_something_to_compare() -> None:
    """One group alone is not slow, and what all reach is typical."""
    assert not case(ran("a", "b", at=0.1)).bad
    assert not case(ran("a", "b", at=0.1), ran("c", "d", at=0.1)).bad


def test_partners_are_distinct_while_they_last() -> None:
    """Every open node meets a passed one in disjoint pairs; who finds none waits for the next round."""
    found = case(ran("a", "b", at=1.5), failed("c", "d"), failed("e", "f"))
    assert [pairing.members for pairing in found.next_pairs(set())] == [("a", "c"), ("b", "d")]
    assert [pairing.members for pairing in found.next_pairs({"a"})] == [("b", "c")]


def test_suspects_meet_each_other_when_nobody_has_passed() -> None:
    """A node in each of two bad pairs can still be found by crossing them."""
    found = case(failed("a", "b"), failed("c", "d"), nodes=NODES[:4])
    assert [set(pairing.members) for pairing in found.next_pairs(set())] == [{"a", "c"}, {"b", "d"}]


@given(st.integers(4, 12), st.data())
def test_one_bad_node_is_always_found(count: int, data: st.DataObject) -> None:
    """Whatever the first pairs are, following the proposals names the one slow node and clears the others."""
    nodes = tuple(data.draw(st.permutations([f"n{number}" for number in range(count)])))
    trials: list[Trial] = []
    pairs = [nodes[i : i + 2] for i in range(0, count - 1, 2)]
    while pairs:
        noise = data.draw(st.floats(0.85, 1.15))
        trials += [ran(*pair, at=(0.1 if "n0" in pair else 1.5) * noise) for pair in pairs]
        pairs = [pairing.members for pairing in case(*trials, nodes=nodes).next_pairs(set())]
    found = case(*trials, nodes=nodes)
    assert list(convicted(found)) == [("n0",)]
    assert set(found.cleared) == set(nodes) - {"n0"}
