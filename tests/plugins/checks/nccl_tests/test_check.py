"""The check `nccl_tests`, through programs that say what nccl-tests would."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster import Device, Measurement, Skip
from muster.model import Json
from muster.references import applicable, shipped
from muster_plugins.checks.nccl_tests.check import NcclTestsSettings, judge
from muster_plugins.checks.nccl_tests.measure import measure
from muster_plugins.shared.collectives.params import CollectiveParams

RECORDED = Path(__file__).parent / "recorded"

PARAMS = CollectiveParams.model_validate({"begin_bytes": "1K", "end_bytes": "4G", "iterations": 3})


FORCED = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_ALGO": "Ring"}


@pytest.fixture
def node(bare_context):
    """The context of a run on a node with this many GPUs."""

    def with_gpus(count=8, expected=None, simulated=False, timeout_s=60.0, model="NVIDIA H100 80GB HBM3"):
        gpus = (Device(index=index, uuid=f"GPU-{index}", model=model, simulated=simulated) for index in range(count))
        return replace(bare_context(timeout_s), devices=tuple(gpus), expected_gpus=expected)

    return with_gpus


@pytest.fixture
def installed(live, tmp_path):
    """The settings of a node on which `all_reduce_perf` is this shell script."""

    def write(script, **settings):
        program = tmp_path / "all_reduce_perf"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        return NcclTestsSettings(directory=tmp_path, **settings)

    return write


def said(name):
    return f"cat {RECORDED / name}"


def codes(measurement: Measurement):
    rows = applicable(shipped(), "nccl_tests", measurement.facts)
    return [(each.code, each.severity) for each in judge(measurement, rows)]


def test_results_are_judged_as_our_own(node, installed):
    """Bandwidth by the large messages, latency by the small ones, efficiency against the published peak."""
    measurement = measure(installed(said("all_reduce_2.17.txt")), PARAMS, node())
    assert measurement.metrics == {
        "algbw_gbps": 273.56,
        "busbw_gbps": 478.73,
        "efficiency": pytest.approx(478.73 / 476),
        "latency_us": 30.1,
        "wrong_elements": 0.0,
    }
    common = {"collective": "all_reduce", "backend": "nccl", "nodes": 1, "world_size": 8, "size_bytes": 1 << 30}
    assert measurement.facts | common == measurement.facts
    assert codes(measurement) == []
    assert judge(measurement, {}) == []


@pytest.mark.parametrize(
    ("name", "gpus", "judged"),
    [
        (
            "all_reduce_a100_two_gpus_nccl_info.txt",
            (2, "NVIDIA A100-SXM4-80GB"),
            ({"algbw_gbps": 192.43, "busbw_gbps": 192.43, "wrong_elements": 0}, []),
        ),
        (
            "all_gather_2.13.6_one_gpu.txt",
            (1, "NVIDIA GeForce RTX 4090"),
            ({"wrong_elements": 0}, []),
        ),
        (
            "broadcast_unchecked.txt",
            (8, "not told"),
            ({"algbw_gbps": 164.825, "busbw_gbps": 164.825, "latency_us": 27.06}, []),
        ),
        (
            "all_gather_old_out_of_bounds.txt",
            (8, "Tesla V100-SXM2-32GB"),
            (
                {"algbw_gbps": 129.05, "busbw_gbps": 129.05, "wrong_elements": 2},
                [("nccl_tests.wrong_elements", "ERROR")],
            ),
        ),
        (
            "all_reduce_2.17.9_corrupted.txt",
            (4, "NVIDIA GH200 120GB"),
            (
                {"algbw_gbps": 47.92, "busbw_gbps": 89.85, "latency_us": 28.02, "wrong_elements": 3_935_945},
                [("nccl_tests.wrong_elements", "ERROR"), ("nccl_tests.incomplete", "UNKNOWN")],
            ),
        ),
        (
            "all_reduce_failed_between.txt",
            (8, "not told"),
            ({"algbw_gbps": 169.24, "busbw_gbps": 338.16, "wrong_elements": 0}, [("nccl_tests.incomplete", "UNKNOWN")]),
        ),
    ],
)
def test_what_programs_have_said_is_judged_as_a_person_would(node, installed, name, gpus, judged):
    """Recorded elsewhere, told as if on this node; what was not checked has no count of wrong elements."""
    count, model = gpus
    metrics, findings = judged
    measurement = measure(installed(said(name)), PARAMS, node(count, model=model))
    assert measurement.metrics == pytest.approx(metrics)
    assert codes(measurement) == findings


def test_the_program_is_asked_for_what_the_parameters_say(node, installed, tmp_path):
    """One process drives all GPUs; the operator's arguments come last."""
    settings = installed(f'echo "$@" > {tmp_path}/asked; {said("all_reduce_2.17.txt")}', arguments=("-c", "1"))
    measure(settings, PARAMS, node(4))
    assert (tmp_path / "asked").read_text() == "-b 1024 -e 4294967296 -f 2 -n 3 -w 2 -g 4 -c 1\n"


def test_the_report_of_new_versions_is_read_without_its_environment(node, installed):
    """The environment may hold the agent's secrets."""
    script = f'while [ "$1" != -J ]; do shift; done; {said("all_reduce_2.17.json")} > "$2"'
    measurement = measure(installed(script, json_report=True), PARAMS, node())
    assert measurement.metrics["busbw_gbps"] == 472.13
    assert codes(measurement) == []
    assert "hf_not_a_real_one" not in measurement.model_dump_json()


def test_the_environment_is_the_profile_and_nccl_tells_the_transport(node, installed):
    """The program runs with the profile's values, and its log is compared with the expected transport."""
    line = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via $VIA"
    script = (
        f'test "$NCCL_ALGO" = Ring && echo "{line}" > "${{NCCL_DEBUG_FILE%%%h*}}h.1.log"; {said("all_reduce_2.17.txt")}'
    )
    forced = CollectiveParams.model_validate({"profile": "net-forced"})
    honest, faulty = (
        measure(installed(script, environment={"VIA": via, "NCCL_KEY": "hush"}), forced, node(timeout_s=60.0))
        for via in ("NET/IB/0", "P2P/CUMEM")
    )
    assert (codes(honest), codes(faulty)) == ([], [("nccl_tests.wrong_transport", "ERROR")])
    assert ("nccl_log" in honest.facts, "nccl_log" in faulty.facts) == (False, True)
    assert honest.facts["environment"] == dict(sorted((FORCED | {"NCCL_KEY": "(removed)"}).items()))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (said("all_reduce_2.17_wrong.txt") + "; exit 1", [("nccl_tests.wrong_elements", "ERROR")]),
        (
            said("all_reduce_2.17_truncated.txt") + "; kill -SEGV $$",
            [("nccl_tests.unreadable", "UNKNOWN"), ("nccl_tests.incomplete", "UNKNOWN")],
        ),
        (said("all_reduce_2.17.txt") + "; exit 3", [("nccl_tests.failed", "UNKNOWN")]),
        (said("all_reduce_failed_at_once.txt") + "; exit 2", [("nccl_tests.failed", "UNKNOWN")]),
        (said("all_reduce_rank_in_front.txt"), [("nccl_tests.unreadable", "UNKNOWN")]),
        ("head -c 100000 /dev/urandom", [("nccl_tests.unreadable", "UNKNOWN")]),
        ("exit 0", [("nccl_tests.unreadable", "UNKNOWN")]),
    ],
)
def test_what_goes_wrong_has_a_name(node, installed, script, expected):
    """Only wrong elements are evidence; a failed program says nothing about the hardware."""
    assert codes(measure(installed(script), PARAMS, node())) == expected


@pytest.mark.parametrize("script", ["exit 1", "true", 'while [ "$1" != -J ]; do shift; done; echo garbage > "$2"'])
def test_a_report_that_is_none_has_a_name(node, installed, script):
    """Examples are a version without `-J`, and a file with other content."""
    ((code, severity),) = codes(measure(installed(script, json_report=True), PARAMS, node()))
    assert code in ("nccl_tests.failed", "nccl_tests.unreadable")
    assert severity == "UNKNOWN"


def test_a_program_that_hangs_is_stopped(node, installed):
    """Before the run's own deadline."""
    measurement = measure(installed("sleep 600"), PARAMS, node(timeout_s=0.5))
    assert codes(measurement) == [("nccl_tests.timed_out", "UNKNOWN")]


def test_a_program_that_cannot_be_started_has_a_name(node, installed):
    """The file exists but is not a program."""
    settings = installed("")
    (settings.directory / "all_reduce_perf").write_bytes(b"\x7fELF garbage")
    assert codes(measure(settings, PARAMS, node())) == [("nccl_tests.not_started", "UNKNOWN")]


def test_missing_gpus_are_named_and_nothing_is_measured(node, installed):
    """The references do not apply to a ring of seven GPUs."""
    measurement = measure(installed(said("all_reduce_2.17.txt")), PARAMS, node(7, expected=8))
    assert (codes(measurement), measurement.metrics) == ([("nccl_tests.devices_missing", "ERROR")], {})


def test_gpus_that_nobody_could_ask_are_unknown(node, installed):
    """Without an inventory, nothing shows that all eight GPUs are gone."""
    measurement = measure(installed(said("all_reduce_2.17.txt")), PARAMS, node(0, expected=8))
    assert (codes(measurement), measurement.metrics) == ([("nccl_tests.not_asked", "UNKNOWN")], {})


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [({"count": 0}, "no GPU here"), ({"simulated": True}, "simulated"), ({}, "no all_reduce_perf in")],
)
def test_where_there_is_nothing_to_run_the_check_is_skipped(node, tmp_path, gpus, reason):
    """No GPU, none that is real, no program."""
    with pytest.raises(Skip, match=reason):
        measure(NcclTestsSettings(directory=tmp_path), PARAMS, node(**gpus))


def test_the_floors_are_those_of_collective():
    """At 16 GiB over the eight GPUs of a node."""
    facts: Json = {"backend": "nccl", "collective": "all_reduce", "nodes": 1, "world_size": 8, "size_bytes": 16 << 30}
    for model, floor in (("NVIDIA H100 80GB HBM3", 460.0), ("NVIDIA H200", 431.0), ("NVIDIA A100-SXM4-80GB", 228.0)):
        for check in ("collective", "nccl_tests"):
            assert applicable(shipped(), check, facts | {"gpu_model": model})["busbw_gbps"].fail_below == floor
