"""The counts that budgets are made of are those that counting again would give, whatever has changed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from muster.model import ServiceState
from muster.transition import Mark, SchedulerNode
from muster_coordinator.model.case import Case
from muster_coordinator.quarantine.cases import Cases

views = st.dictionaries(
    st.sampled_from(["k8s", "slurm"]),
    st.sampled_from(Mark).map(lambda mark: SchedulerNode(node="n", mark=mark)),
    max_size=2,
)
cases = st.builds(
    Case,
    node=st.sampled_from(["n1", "n2", "n3", "n4"]),
    since=st.just(1.0),
    state=st.sampled_from(ServiceState),
    place=st.sampled_from([None, "r1", "r2"]),
    lost_at=st.sampled_from([None, 1.0]),
    gone=st.booleans(),
    views=views,
    kept_out=st.booleans(),
    closed_as=st.sampled_from([None, ServiceState.ACCEPTING, ServiceState.CORDONED]),
)


def counted(known: Cases) -> tuple[int, int, Counter[str], Counter[str]]:
    """Members, those of them that are away, and both by failure domain, counted one by one."""
    members = [case for case in known.by_node.values() if case.is_member]
    away = [case for case in members if case.is_away]
    return (
        len(members),
        len(away),
        Counter(case.place for case in members if case.place),
        Counter(case.place for case in away if case.place),
    )


@given(st.lists(cases, max_size=12), st.lists(cases, max_size=12))
def test_counts_are_those_of_a_recount(stored: list[Case], changes: list[Case]) -> None:
    """After what was stored was taken over, and after every change."""
    known = Cases()
    known.restore(stored)
    for case in changes:
        known.put(case)
        census = known.census
        assert (census.members, census.away, +census.members_of, +census.away_of) == counted(known)
        assert census.kept_out == sum(case.is_kept_out for case in known.by_node.values())


@given(cases)
def test_what_counts(case: Case) -> None:
    """New nodes and those that have left are no capacity; what is out, silent or still kept out by anybody is away."""
    assert case.is_member is (case.state is not ServiceState.ACCEPTING and not case.gone)
    is_marked = any(view.mark in (Mark.FOREIGN, Mark.OURS) for view in case.views.values())
    is_out = case.state in (ServiceState.CORDONED, ServiceState.PROBATION) or case.closed_as is not None
    assert case.is_away is (is_out or is_marked or case.lost_at is not None)
