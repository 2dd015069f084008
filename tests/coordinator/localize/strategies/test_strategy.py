"""What holds for every strategy, over the simulated fabric of the benchmark and over runs that come to nothing."""

import random
from dataclasses import replace

import pytest
from benchmarks.localisation.fabric import Fabric, Faults, lots_of, sites_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lots import examples

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.strategies.pairs import Pairing
from muster_coordinator.localize.strategies.strategy import RoundPlanner, Strategy, planner_of
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, RunOutcome, Site

WAYS = [(strategy, Pairing.RANDOM) for strategy in Strategy] + [(Strategy.PAIRS, pairing) for pairing in Pairing]
NAMING = [way for way in WAYS if way[0] not in (Strategy.SINGLE, Strategy.WHOLE)]
"""Those that go on until they can name who is at fault."""

way = st.sampled_from(WAYS)
abilities = st.builds(CheckAbilities, alone=st.booleans(), by_rail=st.booleans())

FABRICS = {
    "bad nodes": Faults(nodes={"n5": 0.7, "n9": 0.1, "n40": 0.0}),
    "bad links": Faults(links={"n7": 0.6, "n33": 0.2}),
    "a bad leaf": Faults(leaves={"leaf1": 0.5}),
}


def nowhere(sites: dict[str, Site]) -> dict[str, Site]:
    """The same nodes, of which nobody said where they stand."""
    return {node: Site(node) for node in sites}


def policy(way: tuple[Strategy, Pairing], sites: dict[str, Site], **more: object) -> RoundPlanner:
    asked = {"abilities": CheckAbilities(), "seed": "s", "pairing": way[1], **more}
    return planner_of(way[0], sites, **asked)  # type: ignore[arg-type]  # a test's keywords are of any type


def judged(sites: dict[str, Site], runs: list[GroupRun], can: CheckAbilities) -> Diagnosis:
    return Diagnosis(GroupEvidence(sites, tuple(runs)), can)


def play(
    found: RoundPlanner, fabric: Fabric, lots: random.Random, *, void: float = 0, vanishing: float = 0
) -> list[GroupRun]:
    """Plays a sweep to its end. Runs come to nothing, and nodes are gone for good, with these probabilities."""
    runs: list[GroupRun] = []
    absent: frozenset[str] = frozenset()
    for _ in range(found.max_rounds):
        probes = found.next_groups(runs, absent)
        members = [node for probe in probes for node in probe.members]
        assert len(members) == len(set(members)), "groups of a round are disjoint"
        assert absent.isdisjoint(members)
        assert all(probe.reason for probe in probes)
        for probe in probes:
            lost = frozenset(node for node in probe.members if lots.random() < vanishing)
            absent |= lost
            runs.append(nothing(probe) if lost or lots.random() < void else fabric.run(probe))
    return runs


def nothing(probe: Probe) -> GroupRun:
    """A run that says nothing."""
    return GroupRun(group=f"void {' '.join(probe.members)}", members=probe.members, outcome=RunOutcome.VOID)


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_a_healthy_fabric_is_cleared_by_the_first_groups(way: tuple[Strategy, Pairing]) -> None:
    """Nobody is suspected, members are in topology order, and the same seed asks for the same groups."""
    sites = sites_of(24)
    found = policy(way, sites)
    runs = play(found, Fabric(sites, Faults(), 0.02, lots_of("1")), lots_of("2"))
    diagnosis = judged(sites, runs, CheckAbilities())
    assert (diagnosis.culprits, diagnosis.inconclusive, diagnosis.nodes.suspects) == ((), (), {})
    assert [run.members for run in runs] == [
        run.members for run in play(found, Fabric(sites, Faults(), 0.02, lots_of("1")), lots_of("2"))
    ]
    order = list(sites)
    assert all([*run.members] == sorted(run.members, key=order.index) for run in runs)


@pytest.mark.parametrize("faults", FABRICS.values(), ids=FABRICS)
@pytest.mark.parametrize("way", NAMING, ids=" ".join)
def test_what_is_bad_is_named(way: tuple[Strategy, Pairing], faults: Faults) -> None:
    """A leaf as what it is, and nobody is left open."""
    sites = sites_of(60)
    runs = play(policy(way, sites), Fabric(sites, faults, 0.02, lots_of("1")), lots_of("2"))
    diagnosis = judged(sites, runs, CheckAbilities())
    assert diagnosis.convicted == faults.bad_nodes
    assert set(diagnosis.leaves.convicted) == set(faults.leaves)
    assert diagnosis.inconclusive == ()


@settings(max_examples=examples(50))
@given(
    way=way,
    can=abilities,
    count=st.integers(2, 40),
    known=st.booleans(),
    noise=st.floats(0.0, 0.05),
    bad=st.sets(st.integers(0, 39), max_size=5),
    kind=st.sampled_from(["nodes", "links"]),
    void=st.sampled_from([0.0, 0.1]),
    vanishing=st.sampled_from([0.0, 0.02]),
    seed=st.integers(0, 2**32),
)
def test_no_healthy_node_is_convicted(  # noqa: PLR0917 - one for each thing that may go wrong
    way: tuple[Strategy, Pairing],
    can: CheckAbilities,
    count: int,
    known: bool,
    noise: float,
    bad: set[int],
    kind: str,
    void: float,
    vanishing: float,
    seed: int,
) -> None:
    """Whatever is wrong with others, however noisy the fabric, and whoever gets lost; and every sweep ends.

    A leaf is convicted only if all nodes that represent it are bad: it then looks just like a bad switch.
    """
    lots = lots_of(str(seed))
    real = sites_of(count)
    shares = {f"n{number}": lots.choice([0.0, lots.uniform(0.1, 0.7)]) for number in bad if number < count}
    faults = Faults(nodes=shares) if kind == "nodes" else Faults(links=shares)
    sites = real if known else nowhere(real)
    found = policy(way, sites, abilities=can, seed=str(seed))
    runs = play(found, Fabric(real, faults, noise, lots), lots, void=void, vanishing=vanishing)
    diagnosis = judged(sites, runs, can)
    assert diagnosis.convicted <= shares.keys()
    assert all(shares.keys() >= {*diagnosis.leaves.suspected[leaf]} for leaf in diagnosis.leaves.convicted)


@settings(max_examples=examples(20))
@given(
    way=st.sampled_from(NAMING),
    can=abilities,
    count=st.sampled_from([12, 16, 24, 40]),
    said=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 2**32),
)
def test_nobody_behind_a_bad_switch_of_which_nobody_said_is_convicted(
    way: tuple[Strategy, Pairing], can: CheckAbilities, count: int, said: float, seed: int
) -> None:
    """Neither when a whole leaf is bad, nor when what connects it with the others is, whoever else's leaf is known.

    The latter as long as it has several nodes: one or two cannot be told from nodes with a bad link.
    """
    lots = lots_of(str(seed))
    real = sites_of(count)
    leaves = sorted({site.leaf for site in real.values() if site.leaf is not None})
    one, *others = lots.sample(leaves, len(leaves))
    share = lots.choice([0.0, lots.uniform(0.1, 0.7)])
    uplink = {(min(one, other), max(one, other)): share for other in others}
    faults = Faults(paths=uplink) if count > 24 and lots.random() < 0.5 else Faults(leaves={one: share})
    order = lots.sample(list(real), count)
    sites = {node: real[node] if lots.random() < said else Site(node) for node in order}
    runs = play(policy(way, sites, abilities=can, seed=str(seed)), Fabric(real, faults, 0.02, lots), lots)
    assert not judged(sites, runs, can).convicted


@pytest.mark.parametrize("bad", [{}, {"n3": 0.7}, {"n3": 0.4}, {"n4": 0.7}, {"n4": 0.4}], ids=str)
@pytest.mark.parametrize("count", [8, 16, 64])
def test_an_adaptive_sweep_of_two_kinds_of_hardware_is_as_two_sweeps(count: int, bad: dict[str, float]) -> None:
    """Every second node is half as fast. One run of each clears a healthy fleet; a bad node of either kind is named."""
    real, adaptive = sites_of(count), (Strategy.ADAPTIVE, Pairing.RANDOM)
    speed = {node: 0.5 if number % 2 else 1.0 for number, node in enumerate(real)}
    leaves = {node: f"leaf{number // max(count // 4, 8)}" for number, node in enumerate(real)}
    sites = {node: Site(node, leaf=leaves[node], hardware_kind=str(speed[node])) for node in real}
    faults = Faults(nodes={node: own * bad.get(node, 1.0) for node, own in speed.items()})
    runs = play(policy(adaptive, sites), Fabric(real, faults, 0.02, lots_of("1")), lots_of("2"))
    diagnosis = judged(sites, runs, CheckAbilities())
    assert diagnosis.convicted == bad.keys()
    assert diagnosis.inconclusive == ()
    assert len(runs) == count // 2 or bad


@pytest.mark.parametrize("way", NAMING, ids=" ".join)
def test_the_groups_of_every_strategy_have_nodes_of_one_kind(way: tuple[Strategy, Pairing]) -> None:
    """In the first round; a group of two kinds is as fast as the slower one, and hides what the faster one has lost."""
    real = sites_of(24)
    sites = {node: replace(real[node], hardware_kind="ab"[number % 2]) for number, node in enumerate(real)}
    probes = policy(way, sites).next_groups((), frozenset())
    assert len({node for probe in probes for node in probe.members}) == 24
    assert all(len({sites[node].hardware_kind for node in probe.members}) == 1 for probe in probes)


@settings(max_examples=examples(20))
@given(
    way=way,
    can=abilities,
    count=st.integers(3, 40),
    share=st.sampled_from([0.1, 0.5, 0.75]),
    racked=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_a_slower_machine_type_is_not_at_fault(  # noqa: PLR0917 - one for each thing that may differ
    way: tuple[Strategy, Pairing], can: CheckAbilities, count: int, share: float, racked: bool, seed: int
) -> None:
    """However many nodes are of it, whether they stand together or not, and their leaves neither."""
    lots = lots_of(str(seed))
    real = sites_of(count)
    slower = frozenset((list(real) if racked else lots.sample(list(real), count))[: max(1, int(share * count))])
    faults = Faults(nodes=dict.fromkeys(slower, lots.uniform(0.2, 0.95)))
    sites = {node: replace(site, hardware_kind="old" if node in slower else "new") for node, site in real.items()}
    runs = play(policy(way, sites, abilities=can), Fabric(real, faults, 0.02, lots), lots)
    assert judged(sites, runs, can).culprits == ()


@settings(max_examples=examples(20))
@given(
    way=way, can=abilities, count=st.integers(3, 24), bad=st.sets(st.integers(0, 23), max_size=4), seed=st.integers(0)
)
def test_who_is_convicted_depends_neither_on_names_nor_on_ranks(
    way: tuple[Strategy, Pairing], can: CheckAbilities, count: int, bad: set[int], seed: int
) -> None:
    """The same runs with other names, and with their members in another order, convict the same nodes."""
    lots = lots_of(str(seed))
    sites = sites_of(count)
    faults = Faults(nodes={f"n{number}": lots.uniform(0.0, 0.7) for number in bad if number < count})
    runs = play(policy(way, sites, abilities=can), Fabric(sites, faults, 0.02, lots), lots)
    names = dict(zip(sites, (f"x{number}" for number in lots.sample(range(count), count)), strict=True))
    renamed = {names[node]: Site(names[node], site.rack, site.leaf) for node, site in sites.items()}
    turned = [
        GroupRun(
            group=run.group,
            members=tuple(lots.sample([names[node] for node in run.members], len(run.members))),
            outcome=run.outcome,
            objective=run.objective,
            rails=run.rails,
        )
        for run in runs
    ]
    before, after = judged(sites, runs, can), judged(renamed, turned, can)
    assert after.convicted == {names[node] for node in before.convicted}
    assert after.inconclusive == tuple(names[node] for node in before.inconclusive)
    assert after.leaves.convicted.keys() == before.leaves.convicted.keys()


def test_two_nodes_that_fail_leave_each_other_inconclusive() -> None:
    """There is nobody else to tell which of them it is, whatever the strategy."""
    sites = nowhere(sites_of(2))
    fabric = Fabric(sites_of(2), Faults(nodes={"n0": 0.0}), 0.0, lots_of("1"))
    for way in NAMING:
        can = CheckAbilities(alone=False, by_rail=False)
        runs = play(policy(way, sites, abilities=can), fabric, lots_of("2"))
        diagnosis = judged(sites, runs, can)
        assert (diagnosis.culprits, diagnosis.inconclusive) == ((), ("n0", "n1"))
