"""What the check `collective` measures so that a sweep can say what is at fault: rails, directions, who came last."""

import pytest
from tests.cases import cases

from muster.config import Config, Settings
from muster.plugins import collect_checks, load
from muster_plugins.checks.collective.direction import two_sides
from muster_plugins.checks.collective.rails import rails_of
from muster_plugins.shared.unmeasured import Unmeasured

QUICK = {"size_bytes": 1 << 18, "iterations": 3, "warmup": 1}

SLOW_GBPS = 0.0015
"""The faults leave each of two ranks a 3000th of 1 GB/s; healthy ones reach far more."""


@pytest.fixture
def pair(simulated_node):
    """The settings of two nodes with two devices each; the second has `faults`."""

    def of(*faults):
        healthy, other = simulated_node(devices=2), simulated_node(devices=2, faults=list(faults))
        return healthy | {"node": "a"}, other | {"node": "b"}

    return of


def measured(answers, metric):
    """The metric of every rank."""
    return [answer["metrics"][metric] for answer in answers]


def test_a_rail_is_what_has_the_same_local_rank_on_every_node():
    """Rails do not depend on the order of the ranks."""
    assert rails_of(["a", "a", "b", "b"], [0, 1, 0, 1]) == [(0, 2), (1, 3)]
    assert rails_of(["a", "b", "c", "a", "b", "c"], [1, 1, 1, 0, 0, 0]) == [(3, 4, 5), (0, 1, 2)]


@pytest.mark.parametrize(
    ("nodes", "local_ranks", "reason"),
    [
        (["a", "a"], [0, 1], "at least two"),
        (["a", "a", "b"], [0, 1, 0], "b has 1, a has 2"),
    ],
)
def test_without_rails_there_is_nothing_to_compare(nodes, local_ranks, reason):
    """The finding gives the reason."""
    with pytest.raises(Unmeasured, match=reason):
        rails_of(nodes, local_ranks)


@cases(
    ("nodes", "sides"),
    [
        (["a", "a", "b", "b"], ([0, 1], [2, 3])),
        (["b", "a", "b", "a"], ([0, 2], [1, 3])),
        (["a", "a"], None),
        (["a", "b", "b"], None),
        (["a", "b", "c"], None),
    ],
)
def test_two_nodes_with_as_many_ranks_are_two_sides(nodes, sides):
    """Each rank of one has its counterpart on the other."""
    assert two_sides(nodes) == sides


def test_the_check_says_by_which_metric_rails_can_be_told_apart():
    """The check names the metric by rail and takes the parameter that requests it."""
    check = collect_checks(load(Config(Settings())))["collective"]
    assert check.by_rail == "rail_busbw_gbps"
    assert check.params.model_fields["by_rail"].default is False


@pytest.mark.parametrize(
    "collective", ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"]
)
def test_every_collective_runs_by_rail(torch_child, pair, collective):
    """Every element is right, all ranks report the same rails, and the whole group is measured, too."""
    params = {"collective": collective, "size_bytes": 1 << 12, "iterations": 2, "by_rail": True}
    answers = torch_child.ask("collective", *pair(), params=params, ranks=[2, 2])
    assert measured(answers, "wrong_elements") == [0, 0, 0, 0]
    rails, *others = measured(answers, "rail_busbw_gbps")
    assert len(rails) == 2
    assert others == [rails] * 3
    assert all(value > 0 for value in measured(answers, "busbw_gbps"))
    assert answers[0]["facts"]["collective"] == collective


def test_a_slow_rail_slows_all_and_shows_by_rail(torch_child, pair):
    """All ranks together are as slow as the slow rail; one rail after the other, only that rail is slow."""
    nodes = pair({"kind": "slow_rail", "device": 1, "factor": 300})
    answers = torch_child.ask("collective", *nodes, params=QUICK | {"by_rail": True}, ranks=[2, 2])
    assert all("metrics" in answer for answer in answers), answers
    healthy, slow = answers[0]["metrics"]["rail_busbw_gbps"]
    assert max(slow, *measured(answers, "busbw_gbps")) < healthy / 2


@pytest.mark.parametrize("ranks", [[2], [2, 1]])
def test_a_group_without_rails_says_so(torch_child, pair, ranks):
    """The finding says so, because a number would mean something else."""
    nodes = pair()[: len(ranks)]
    answers = torch_child.ask("collective", *nodes, params=QUICK | {"by_rail": True}, ranks=ranks)
    for answer in answers:
        (finding,) = answer["findings"]
        assert (finding["code"], finding["severity"]) == ("collective.no_rails", "UNKNOWN")
        assert answer["metrics"] == {}


@pytest.mark.parametrize(
    ("fault", "slow"),
    [
        ({"kind": "slow_send"}, ["b", "b"]),
        ({"kind": "slow_link"}, ["a", "a", "b", "b"]),
        ({"kind": "slow_rail", "device": 1}, ["a", "a", "b", "b"]),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_node_that_is_slow_only_on_sending_can_be_told(torch_child, pair, fault, slow):
    """Data from the other node arrives at full speed; if the link is slow both ways, it does not."""
    params = QUICK | {"collective": "broadcast"}
    answers = torch_child.ask("collective", *pair(fault | {"factor": 3000}), params=params, ranks=[2, 2])
    speeds = zip("aabb", measured(answers, "sent_gbps"), strict=True)
    assert [node for node, speed in speeds if speed < SLOW_GBPS] == slow


def test_all_ranks_of_a_node_tell_the_same_of_it(torch_child, pair):
    """The value is that of the whole node with all its ranks."""
    a, also_a, b, also_b = measured(torch_child.ask("collective", *pair(), params=QUICK, ranks=[2, 2]), "sent_gbps")
    assert (a, b) == (also_a, also_b)


@pytest.mark.parametrize(("names", "ranks"), [("a", [2]), ("abc", [1, 1, 1])])
def test_directions_are_measured_between_two_nodes_only(torch_child, names, ranks):
    """In a larger group, a node has several other nodes."""
    nodes = ({"node": name} for name in names)
    answers = torch_child.ask("collective", *nodes, params={"size_bytes": 1 << 12}, ranks=ranks)
    assert all("sent_gbps" not in answer["metrics"] for answer in answers)


def test_what_goes_one_way_is_checked_as_well(torch_child):
    """Each element that goes one way is checked, also those that a broadcast from rank 0 would not show."""
    params = {"collective": "broadcast", "size_bytes": 1 << 12, "iterations": 2}
    answers = torch_child.ask("collective", {"node": "a"}, {"node": "b"}, params=params, corrupt={"rank": 1})
    assert answers[0]["metrics"]["wrong_elements"] == 4
