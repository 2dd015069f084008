"""The check `collective`."""

import json

import pytest
from pydantic import ValidationError
from tests.cases import cases

from muster import Measurement, Reference, Severity
from muster.model import Json
from muster.references import applicable, shipped
from muster_plugins.checks.collective.check import GroupParams, judge
from muster_plugins.checks.nccl_tests.output import parse_json, parse_text
from muster_plugins.shared.collectives.params import ONE_RANK

FACTS: Json = {
    "collective": "all_reduce",
    "backend": "nccl",
    "nodes": 2,
    "rank": 3,
    "device": 1,
    "missing": [],
    "simulated": False,
    "same_host": [],
    "expected_transport": None,
    "transports": {},
    "group_transports": [],
}

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
    """Wrong elements are an error; bandwidth is judged by its minimum, and is not judged without a bus."""
    findings = judge(Measurement(metrics=metrics, facts=FACTS), FLOOR)
    assert [(each.code, each.severity, each.device) for each in findings] == expected


def test_wrong_elements_name_the_other_nodes():
    """Each of them may have sent the wrong elements."""
    facts: Json = FACTS | {"peers": ["n1", "n2"]}
    (finding,) = judge(Measurement(metrics={"wrong_elements": 7.0, "busbw_gbps": 300.0}, facts=facts), FLOOR)
    assert finding.evidence == {"wrong_elements": 7.0, "rank": 3, "peers": ["n1", "n2"]}


def test_a_small_message_that_takes_long_is_told():
    """Latency has its own reference."""
    references = {"latency_us": Reference(check="collective", metric="latency_us", warn_above=96, source="a test")}
    (finding,) = judge(Measurement(metrics={"latency_us": 100.0}, facts=FACTS), references)
    assert (finding.code, finding.severity) == ("collective.latency", Severity.WARNING)


@pytest.mark.parametrize(
    ("facts", "severity"),
    [
        ({}, Severity.UNKNOWN),
        ({"backend": "gloo"}, Severity.INFO),
        ({"simulated": True}, None),
        ({"same_host": []}, None),
    ],
)
def test_nodes_on_one_host_do_not_pass_for_a_network(facts, severity):
    """The network is reported as not measured if a reference judges it; else this is only a note, or intended."""
    findings = judge(Measurement(facts=FACTS | {"same_host": ["a", "b"]} | facts), {})
    assert [each.severity for each in findings if each.code == "collective.same_host"] == (
        [severity] if severity else []
    )


def test_floors_are_for_large_messages_between_the_nodes_they_were_measured_on():
    """A small message measures latency, and another machine has another fabric."""
    facts: Json = {
        "collective": "all_reduce",
        "backend": "nccl",
        "nodes": 2,
        "machine_type": "a4-highgpu-8g",
        "size_bytes": 1 << 30,
    }
    assert applicable(shipped(), "collective", facts)["busbw_gbps"].fail_below == 250
    assert applicable(shipped(), "collective", facts | {"collective": "all_gather"})["busbw_gbps"].fail_below == 250
    others: tuple[Json, ...] = ({"size_bytes": 1 << 29}, {"machine_type": None}, {"backend": "gloo"}, {"nodes": 3})
    for other in others:
        assert applicable(shipped(), "collective", facts | other) == {}


@cases(
    ("params", "message"),
    [
        ({"begin_bytes": "2M"}, "belong together"),
        ({"begin_bytes": "2M", "end_bytes": "1M"}, "more than end_bytes"),
        ({"begin_bytes": "2M", "end_bytes": "4M", "size_bytes": 4}, "either size_bytes or"),
        ({"size_bytes": "2X"}, "integer"),
        ({"size_bytes": "2T"}, "integer"),
        ({"size_bytes": 3}, "greater than or equal to 4"),
        ({"size_bytes": "1025G"}, "less than or equal to"),
        ({"factor": 1}, "greater than or equal to 2"),
        ({"collective": "gather"}, "all_reduce"),
        ({"profile": "infiniband"}, "net-forced"),
        ({"expect_transport": "IB"}, "pattern"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    """The error says what would be right."""
    with pytest.raises(ValidationError, match=message):
        GroupParams.model_validate(params)


def test_sizes_can_be_written_with_units_and_as_a_series():
    """As for nccl-tests: 1024 to a unit, from the smallest by a factor up to the largest."""
    assert GroupParams.model_validate({"begin_bytes": "2M", "end_bytes": "16M"}).sizes(4) == [
        2 << 20,
        4 << 20,
        8 << 20,
        16 << 20,
    ]
    assert GroupParams.model_validate({"begin_bytes": 8, "end_bytes": "1K", "factor": 8}).sizes(4) == [8, 64, 512]
    assert GroupParams.model_validate({"size_bytes": "1.5k"}).sizes(4) == [1536]
    assert GroupParams().sizes(4) == [4]


FACTORS = {"all_reduce": 4 / 3, "all_gather": 2 / 3, "reduce_scatter": 2 / 3, "alltoall": 2 / 3}


@pytest.mark.parametrize(
    "collective", ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"]
)
def test_ranks_exchange_every_element_and_agree_about_the_group(torch_child, codes, collective):
    """Three nodes without GPUs meet over gloo at rank 0's socket; every element is exact, at odd sizes too."""
    params = {"collective": collective, "begin_bytes": 4, "end_bytes": 1 << 18, "factor": 256, "iterations": 3}
    answers = torch_child.ask("collective", *({"node": name} for name in "abc"), params=params)
    for rank, answer in enumerate(answers):
        assert codes(answer) == [("collective.same_host", "INFO", None)]
        common = {"backend": "gloo", "nodes": 3, "world_size": 3, "rank": rank, "simulated": False}
        assert answer["facts"] | common | {"same_host": ["a", "b", "c"]} == answer["facts"]
        metrics = answer["metrics"]
        assert metrics["wrong_elements"] == 0
        assert metrics["busbw_gbps"] == pytest.approx(metrics["algbw_gbps"] * FACTORS.get(collective, 1))
        assert metrics["latency_us"] > 0
    assert sum(each["rounds"] for each in answers[0]["facts"]["arrived_last"]) >= 9


@pytest.mark.parametrize("lacking", [[0], [1], [0, 1]])
def test_ranks_meet_whether_their_torch_has_libuv_or_not(torch_child, lacking):
    """Debian's torch has no libuv; a group works if all ranks, only rank 0 or only another rank have such a torch."""
    params = {"size_bytes": 1 << 12, "iterations": 1}
    answers = torch_child.ask("collective", {"node": "a"}, {"node": "b"}, params=params, without_libuv=lacking)
    assert [answer["metrics"]["wrong_elements"] for answer in answers] == [0, 0]


@pytest.mark.parametrize(
    ("collective", "blamed"),
    [
        ("all_reduce", {0, 1, 2, 3}),
        ("all_gather", {0, 1, 2, 3}),
        ("reduce_scatter", {0}),
        ("alltoall", {0}),
        ("broadcast", set()),
        ("sendrecv", {2}),
    ],
)
def test_a_rank_that_sends_something_wrong_is_caught_by_those_who_receive_it(torch_child, collective, blamed):
    """Rank 1 of four changes its first element, which goes to some ranks or, if only rank 0 sends, to none."""
    params = {"collective": collective, "size_bytes": 1 << 12, "iterations": 2}
    nodes = [{"node": name} for name in "abcd"]
    answers = torch_child.ask("collective", *nodes, params=params, corrupt={"rank": 1})
    assert {rank for rank, answer in enumerate(answers) if answer["metrics"]["wrong_elements"]} == blamed


def test_results_come_as_nccl_tests_give_them(torch_child, simulated_node):
    """Rank 0 has the table and the JSON, which count wrong elements of all ranks."""
    faulty = simulated_node(faults=[{"kind": "corrupt", "device": 0}])
    params = {"begin_bytes": "1K", "end_bytes": "2K", "iterations": 1, "warmup": 0}
    first, second = torch_child.ask("collective", simulated_node(), faulty, params=params)
    assert "table" not in second["facts"]
    table = parse_text(first["facts"]["table"])
    assert [(row.size_bytes, row.count, row.redop, row.wrong) for row in table.rows] == [
        (1024, 256, "sum", 1),
        (2048, 512, "sum", 1),
    ]
    assert table.out_of_bounds == 2
    report = parse_json(json.dumps(first["facts"]["report"]))
    assert [row.wrong for row in report.rows] == [1, 1]
    assert first["facts"]["report"]["out_of_bounds"] == {"count": 2, "okay": "false"}


def test_the_rank_that_comes_late_is_visible(torch_child, simulated_node):
    """The others wait for it, and it is named as the one that came last."""
    nodes = [simulated_node() | {"node": name} for name in "abc"]
    params = {"size_bytes": 1 << 12, "iterations": 4, "warmup": 0}
    answers = torch_child.ask("collective", *nodes, params=params, late={"rank": 1, "seconds": 0.05})
    assert answers[1]["metrics"]["waited_s"] < 0.04 < min(answers[rank]["metrics"]["waited_s"] for rank in (0, 2))
    assert answers[1]["metrics"]["arrived_last"] >= 0.75
    assert answers[1]["metrics"]["compute_s"] >= 0.05
    assert answers[0]["facts"]["arrived_last"][0]["node"] == "b"


def test_a_message_that_does_not_fit_is_refused_with_what_would(torch_child):
    """The error says which size fits, before the others have waited."""
    (answer,) = torch_child.ask("collective", params={"size_bytes": "1024G"})
    (finding,) = answer["findings"]
    assert (finding["code"], finding["severity"]) == ("collective.too_large", "UNKNOWN")
    assert 0 < finding["evidence"]["fits_bytes"] < 1 << 40


def test_the_environment_is_a_profile_with_the_operators_values_in_it(torch_child):
    """The environment is set before the group is made, and reported without secrets."""
    settings = {"environment": {"NCCL_IB_TC": "7", "NCCL_API_TOKEN": "hush"}, "profile": "roce"}
    nodes = ({"node": name, "plugins": {"collective": settings}} for name in "ab")
    answer, _ = torch_child.ask("collective", *nodes, params={"size_bytes": 4})
    shown = answer["facts"]["environment"]
    expected = {"NCCL_IB_TC": "7", "NCCL_IB_GID_INDEX": "3", "NCCL_API_TOKEN": "(removed)", "NCCL_DEBUG": "INFO"}
    assert shown | expected == shown
    assert "hush" not in json.dumps(answer)


def test_a_group_that_does_not_use_what_was_expected_does_not_pass(torch_child, codes):
    """Gloo is not InfiniBand."""
    nodes = ({"node": "a"}, {"node": "b"})
    answers = torch_child.ask("collective", *nodes, params={"size_bytes": 4, "expect_transport": "NET/IB"})
    for answer in answers:
        assert ("collective.transport_unknown", "UNKNOWN", None) in codes(answer)


@pytest.mark.parametrize("collective", ["all_reduce", "sendrecv"])
def test_a_group_of_one_rank_is_skipped(torch_child, collective):
    """It would copy a message from memory to memory and pass, although nothing was sent."""
    (answer,) = torch_child.ask("collective", params={"collective": collective, "size_bytes": 4})
    assert answer == {"skipped": ONE_RANK}


def test_the_ranks_of_one_node_are_measured(torch_child, codes):
    """Several devices of a node have something to exchange."""
    answers = torch_child.ask("collective", params={"size_bytes": 1 << 12}, ranks=[2])
    assert [codes(answer) for answer in answers] == [[], []]
    assert all(answer["metrics"]["busbw_gbps"] > 0 for answer in answers)


def test_a_corrupt_device_finds_wrong_elements(torch_child, codes, simulated_node):
    """Only the rank on the faulty device reports itself."""
    faulty = simulated_node(faults=[{"kind": "corrupt", "device": 0}])
    answers = torch_child.ask("collective", simulated_node(), faulty, params={"size_bytes": 1 << 16})
    assert [codes(answer) for answer in answers] == [[], [("collective.wrong_elements", "ERROR", 0)]]
    assert answers[1]["facts"]["simulated"] is True


def test_a_slow_link_slows_both_ends(torch_child, simulated_node):
    """As with a real link, a single rank cannot show which side is at fault."""
    params = {"size_bytes": 1 << 20, "iterations": 5}
    slow = simulated_node(faults=[{"kind": "slow_link", "factor": 100}])
    healthy = torch_child.ask("collective", simulated_node(), simulated_node(), params=params)
    limping = torch_child.ask("collective", simulated_node(), slow, params=params)
    best, worst = ([answer["metrics"]["busbw_gbps"] for answer in answers] for answers in (healthy, limping))
    assert max(worst) < min(best) / 2


def test_a_rank_whose_partner_never_comes_gives_up(torch_child):
    """Without our own deadline, the ranks would wait for half an hour."""
    absent = {"plugins": {"simulated": {"enabled": True, "faults": [{"kind": "crash"}]}}}
    (answer, _) = torch_child.ask("collective", {}, absent, params={"timeout_s": 0.5})
    assert "Error" in answer["raised"]


def test_a_node_that_lacks_a_device_does_not_join_on_the_cpu(torch_child):
    """The node would slow a group of GPUs down to the speed of a CPU without any sign of it."""
    (answer,) = torch_child.ask("collective", {"expected_gpus": 1})
    assert "busbw_gbps" not in answer["metrics"]
    (finding,) = judge(Measurement(facts=answer["facts"]), {})
    assert (finding.code, finding.severity) == ("collective.not_asked", Severity.UNKNOWN)
