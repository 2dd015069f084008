"""The check `collective`."""

import pytest

from muster import Measurement, Reference, Severity
from muster.model import Json
from muster.references import applicable, shipped
from muster_plugins.collective import judge

FACTS: Json = {"rank": 3, "device": 1, "missing": []}

FLOOR = {"busbw_gbps": Reference(check="collective", metric="busbw_gbps", fail_below=250, source="a test")}


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"wrong_elements": 0.0, "busbw_gbps": 300.0}, []),
        ({"wrong_elements": 7.0, "busbw_gbps": 300.0}, [("collective.wrong_elements", "ERROR", 1)]),
        ({"wrong_elements": 0.0, "busbw_gbps": 100.0}, [("collective.slow", "ERROR", None)]),
        ({"wrong_elements": 0.0, "algbw_gbps": 1.0}, []),
    ],
)
def test_judgement(metrics, expected):
    """Wrong elements are an error; bandwidth is judged by its floor, and not at all where there is no bus."""
    findings = judge(Measurement(metrics=metrics, facts=FACTS), FLOOR)
    assert [(each.code, each.severity, each.device) for each in findings] == expected


def test_floors_are_for_large_buffers_between_the_nodes_they_were_measured_on():
    """A small buffer measures latency, and another machine has another fabric."""
    facts: Json = {
        "collective": "all_reduce",
        "backend": "nccl",
        "nodes": 2,
        "machine_type": "a4-highgpu-8g",
        "large": True,
    }
    assert applicable(shipped(), "collective", facts)["busbw_gbps"].fail_below == 250
    others: tuple[Json, ...] = ({"large": False}, {"machine_type": None}, {"backend": "gloo"}, {"nodes": 3})
    for other in others:
        assert applicable(shipped(), "collective", facts | other) == {}


def test_ranks_add_up_every_element_and_agree_about_the_group(torch_child, codes):
    """Three nodes without GPUs meet over gloo at rank 0's socket; their sum is exact."""
    answers = torch_child.ask("collective", {"node": "a"}, {"node": "b"}, {"node": "c"}, params={"size_bytes": 1 << 20})
    for rank, answer in enumerate(answers):
        assert codes(answer) == []
        common = {"backend": "gloo", "nodes": 3, "world_size": 3, "rank": rank, "large": False, "simulated": False}
        assert answer["facts"] | common == answer["facts"]
        metrics = answer["metrics"]
        assert metrics["wrong_elements"] == 0
        assert metrics["busbw_gbps"] == pytest.approx(metrics["algbw_gbps"] * 4 / 3)


def test_a_group_of_one_has_no_bus(torch_child, codes):
    """Alone on a node the check still proves its sums, but reports no bus bandwidth."""
    (answer,) = torch_child.ask("collective", params={"size_bytes": 4})
    assert codes(answer) == []
    assert "busbw_gbps" not in answer["metrics"]
    assert answer["metrics"]["algbw_gbps"] > 0


def test_a_corrupt_device_finds_wrong_elements(torch_child, codes, simulated_node):
    """Only the rank on the faulty device accuses itself."""
    faulty = simulated_node(faults=[{"kind": "corrupt", "device": 0}])
    answers = torch_child.ask("collective", simulated_node(), faulty, params={"size_bytes": 1 << 16})
    assert [codes(answer) for answer in answers] == [[], [("collective.wrong_elements", "ERROR", 0)]]
    assert answers[1]["facts"]["simulated"] is True


def test_a_slow_link_slows_both_ends(torch_child, simulated_node):
    """As with a real link, neither rank alone can tell whose fault it is."""
    params = {"size_bytes": 8 << 20, "iterations": 5}
    slow = simulated_node(faults=[{"kind": "slow_link", "factor": 20}])
    healthy = torch_child.ask("collective", simulated_node(), simulated_node(), params=params)
    limping = torch_child.ask("collective", simulated_node(), slow, params=params)
    best, worst = ([answer["metrics"]["busbw_gbps"] for answer in answers] for answers in (healthy, limping))
    assert max(worst) < min(best) / 2


def test_a_rank_whose_partner_never_comes_gives_up(torch_child):
    """Without a deadline of ours, the ranks would wait for half an hour."""
    absent = {"plugins": {"simulated": {"enabled": True, "faults": [{"kind": "crash"}]}}}
    (answer, _) = torch_child.ask("collective", {}, absent, params={"timeout_s": 0.5})
    assert "Error" in answer["raised"]


def test_a_node_that_lacks_a_device_does_not_join_on_the_cpu(torch_child):
    """It would drag a group of GPUs down to what a CPU can do, and say nothing."""
    (answer,) = torch_child.ask("collective", {"expected_gpus": 1})
    assert "busbw_gbps" not in answer["metrics"]
    (finding,) = judge(Measurement(facts=answer["facts"]), {})
    assert (finding.code, finding.severity) == ("collective.devices_missing", Severity.ERROR)
    assert "index 0" in finding.summary
