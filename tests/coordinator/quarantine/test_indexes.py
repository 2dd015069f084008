"""The indexes are those that counting again would give, whatever has changed."""

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from muster.model import Action, ServiceState
from muster.transition import Mark, SchedulerNode
from muster_coordinator.model.quarantine import (
    ActorStatus,
    NodeDecision,
    NodeEvidence,
    QuarantineRecord,
    Requirement,
    Wait,
)
from muster_coordinator.quarantine.records import Records, rank

observed = st.dictionaries(
    st.sampled_from(["k8s", "slurm"]),
    st.builds(
        SchedulerNode, node=st.just("n"), mark=st.sampled_from(Mark), keeps_off=st.sampled_from([None, None, "taint x"])
    ),
    max_size=2,
)
requirements = st.builds(
    Requirement,
    row=st.just("slow"),
    codes=st.just(("gemm.slow",)),
    cause=st.sampled_from(["gemm.slow", "nvml.gone"]),
    action=st.just(Action.NONE),
    urgency=st.sampled_from([10, 50]),
    reason=st.just("it is slow"),
)
records = st.builds(
    QuarantineRecord,
    node=st.sampled_from(["n1", "n2", "n3", "n4"]),
    evidence=st.builds(
        NodeEvidence,
        domain=st.sampled_from([None, "r1", "r2"]),
        lost_at=st.sampled_from([None, 1.0]),
        has_left=st.booleans(),
    ),
    decision=st.builds(
        NodeDecision,
        since=st.just(1.0),
        state=st.sampled_from(ServiceState),
        requirement=st.none() | requirements,
        required_since=st.sampled_from([1.0, 2.0]),
        cause_since=st.sampled_from([1.0, 2.0]),
        waits_for=st.sampled_from([None, *Wait]),
        kept_out_as_new=st.booleans(),
    ),
    actors=st.builds(
        ActorStatus,
        observed=observed,
        shut_out_as=st.sampled_from([None, ServiceState.ACCEPTING, ServiceState.CORDONED]),
    ),
)


def counted(known: Records) -> tuple[int, int, Counter[str], Counter[str]]:
    """Members, those of them that are away, and both by failure domain, counted one by one."""
    members = [record for record in known.by_node.values() if record.is_member]
    away = [record for record in members if record.is_away]
    return (
        len(members),
        len(away),
        Counter(record.evidence.domain for record in members if record.evidence.domain),
        Counter(record.evidence.domain for record in away if record.evidence.domain),
    )


def listed(known: Records) -> tuple[set[str], dict[str, set[str]]]:
    """The nodes that are held, and the members that others keep work off."""
    members = [record for record in known.by_node.values() if record.is_member]
    kept_off: defaultdict[str, set[str]] = defaultdict(set)
    for record in members:
        for how in record.kept_off:
            kept_off[how].add(record.node)
    return {record.node for record in members if record.state is ServiceState.HELD}, kept_off


def by_cause(known: Records) -> dict[str, dict[str, float]]:
    """The nodes of each cause, and since when each has it."""
    nodes: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for record in known.by_node.values():
        if record.decision.requirement is not None:
            nodes[record.decision.requirement.cause][record.node] = record.decision.cause_since or 0.0
    return nodes


@given(st.lists(records, max_size=12), st.lists(records, max_size=12))
def test_indexes_are_those_of_a_rebuild(stored: list[QuarantineRecord], changes: list[QuarantineRecord]) -> None:
    """After what was stored was taken over, and after every change."""
    known = Records()
    known.restore(stored)
    for record in changes:
        known.put(record)
        census = known.census
        assert (census.members, census.away, +census.members_of, +census.away_of) == counted(known)
        assert (census.held, census.kept_off) == listed(known)
        assert census.kept_out == sum(each.is_kept_out for each in known.by_node.values())
        waiting = [each for each in known.by_node.values() if each.decision.waits_for is not None]
        assert list(known.in_order()) == sorted(waiting, key=rank)
        assert known.nodes_by_cause == by_cause(known)


@given(records)
def test_what_counts(record: QuarantineRecord) -> None:
    """New nodes and those that have left are no capacity; what is out, silent or still kept out by anybody is away."""
    state, actors = record.state, record.actors
    assert record.is_member is (state is not ServiceState.ACCEPTING and not record.evidence.has_left)
    is_marked = any(seen.mark in (Mark.FOREIGN, Mark.OURS) for seen in actors.observed.values())
    is_out = state in (ServiceState.CORDONED, ServiceState.PROBATION) or actors.shut_out_as is not None
    is_kept_off = any(seen.keeps_off is not None for seen in actors.observed.values())
    assert record.is_away is (is_out or is_marked or is_kept_off or record.evidence.lost_at is not None)
