"""Acceptance of one node, by itself and with DistributedDataParallel: what it offers, and what it does badly.

Not held here: images that run under Docker, Pyxis or Enroot, Jobs and DaemonSets of Kubernetes, which are not there
yet or need what a test machine has not; and every figure that only a GPU has.
"""

import json
from xml.etree import ElementTree

import pytest

from muster.check import valid_params
from muster.config import Settings
from muster_agent.acceptance.suites import suites

SECTIONS = ["ENV", "COMPUTE", "MEMORY", "TRAIN", "COLLECTIVE"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that reports are written to."""
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def accepted(command, simulated, written, with_torch):
    """The quick suite on a node with two devices."""
    reports = ("--report-dir", str(written), "--report-name", "monday")
    return command("check", "run", "--suite", "quick", "--verbose", *reports, settings={"plugins": simulated(2)})


@pytest.fixture(scope="module")
def runs(accepted, written):
    """By check, the runs in the report."""
    assert accepted.code == 0, accepted.err
    told = json.loads((written / "monday.json").read_text())
    return {step["check"]: step["runs"] for step in told["steps"]}


@pytest.fixture(scope="module")
def broken(command, simulated, with_torch):
    """Two checks on a node whose second device gives a wrong element now and then."""
    faulty = {"plugins": simulated(2, {"kind": "corrupt", "device": 1})}
    return command("check", "run", "gemm", "collective", "--quick", "--json", settings=faulty)


# What it offers


def test_every_device_tells_its_speed_in_device_order(runs):
    """One figure for each, and whose it is."""
    (run,) = runs["gemm"]
    assert run["facts"]["devices"] == [0, 1]
    assert len(run["metrics"]["tflops_fp32"]) == 2
    assert all(speed > 0 for speed in run["metrics"]["tflops_fp32"])


def test_every_device_generates_tokens(command, simulated, with_torch):
    """Tokens per second, of prompts and of new tokens apart."""
    settings = {"plugins": simulated(2)}
    (run,) = command("check", "run", "inference", "--quick", "--json", settings=settings).runs("inference")
    assert run["verdict"] == "PASS"
    for speed in ("prefill_tokens_per_s", "decode_tokens_per_s"):
        assert len(run["metrics"][speed]) == 2
        assert min(run["metrics"][speed]) > 0


@pytest.mark.parametrize(("size", "iterations"), [(2048, 10), (3072, 20)])
def test_the_products_of_the_tool_can_be_asked_for(checks, size, iterations):
    """Single precision, the edge of the matrices and how many products."""
    params = valid_params(checks["gemm"], {"dtypes": ["fp32"], "size": size, "iterations": iterations})
    assert params.model_dump(include={"size", "iterations"}) == {"size": size, "iterations": iterations}


def test_a_small_network_learns(runs):
    """From a fixed seed; the loss ends below 0.7 of its first value."""
    (run,) = runs["training"]
    assert (run["facts"]["model"], run["params"]["seed"]) == ("mlp", 1)
    assert all(ratio < 0.7 for ratio in run["metrics"]["loss_ratio"])


@pytest.mark.parametrize(
    ("check", "ratio", "expected"),
    [
        ("training", 0.69, []),
        ("training", 0.71, [("training.loss_not_falling", "ERROR")]),
        ("training_ddp", 0.79, []),
        ("training_ddp", 0.81, [("training_ddp.loss_not_falling", "ERROR")]),
    ],
)
def test_a_loss_that_does_not_fall_fails(judge, check, ratio, expected):
    """By the bounds of the tool: 0.7 alone, 0.8 together."""
    alone = {"model": "mlp", "data": "synthetic", "steps": 60, "devices": [0], "missing": []}
    rank = {"task": "of all", "kind": "a GPU", "fingerprint": "9d8b"}
    facts = alone if check == "training" else alone | {"rank": 0, "device": 0, "ranks": [rank], "weights": ["44ab"]}
    assert judge(check, {"loss_ratio": [ratio] if check == "training" else ratio}, facts) == expected


def test_devices_learn_together(runs):
    """Both are ranks of one training, whose loss falls as well."""
    assert [run["facts"]["world_size"] for run in runs["training_ddp"]] == [2]
    assert runs["training_ddp"][0]["metrics"]["loss_ratio"] < 0.8


def test_one_command_runs_everything_and_shows_its_sections(accepted):
    """What was measured as well, since --verbose was given, and the result at the end."""
    shown = [line.removeprefix("== ") for line in accepted.out.splitlines() if line.startswith("== ")]
    assert shown == [*SECTIONS, "ENV", "RESULT"]
    assert "tflops_fp32 = " in accepted.out
    assert "quick: PASS (simulated devices), 1 node" in accepted.out


def test_the_report_tells_of_every_check_and_sums_up(accepted, written):
    """As JSON for programs, as JUnit XML for a CI system, and as a page that needs nothing else."""
    told = json.loads((written / "monday.json").read_text())
    assert (told["suite"], told["verdict"], told["simulated"]) == ("quick", "PASS", True)
    assert {run["check"] for step in told["steps"] for run in step["runs"]} >= {"gemm", "training", "training_ddp"}
    cases = ElementTree.parse(written / "monday.xml").getroot().iter("testcase")
    assert {"gemm", "collective"} <= {case.get("name") for case in cases}
    assert 'class="bar"' in (written / "monday.html").read_text()


def test_a_failure_is_in_the_exit_code(broken):
    """And the report names the device that is to blame."""
    assert broken.code == 2
    errors = [finding for finding in broken.runs("gemm")[0]["findings"] if finding["severity"] == "ERROR"]
    assert [(finding["code"], finding["device"]) for finding in errors] == [("gemm.corrupt", 1)]


def test_slurm_can_look_at_a_node_before_each_job(checks):
    """The suite for a prolog touches no device and is done in less than 5 s."""
    steps = [checks[step.check] for step in suites(Settings())["prolog"].steps]
    assert {check.needs for check in steps} == {"NOTHING"}
    assert sum(check.cost_s for check in steps) < 5


# What it does badly


def test_a_right_sum_is_not_taken_for_a_wrong_one(runs):
    """The buffer is filled again before every round, so a world of two passes."""
    (run,) = runs["collective"]
    assert run["facts"]["world_size"] == 2
    assert run["metrics"]["wrong_elements"] == 0


def test_one_wrong_element_is_found(broken):
    """Every element is checked, in every round, by every rank that has received it."""
    codes = {finding["code"] for run in broken.runs("collective") for finding in run["findings"]}
    assert "collective.wrong_elements" in codes


def test_what_is_timed_comes_after_a_warm_up(checks):
    """By default and when it has to be quick."""
    gemm = checks["gemm"].quick
    assert gemm["warmup_iterations"] > 0
    assert gemm["warmup_s"] > 0
    assert checks["training"].quick["warmup"] > 0


def test_speeds_are_in_the_report_and_have_a_bound(runs, judge):
    """A device far below what its model can do fails, and the others do not."""
    assert "tflops_fp32" in runs["gemm"][0]["metrics"]
    facts = {"gpu_model": "NVIDIA H100 80GB HBM3", "size": 8192, "devices": [0, 1], "missing": []}
    assert judge("gemm", {"tflops_bf16": [700.0, 300.0]}, facts) == [("gemm.slow", "ERROR")]


def test_every_device_learns(runs):
    """Not only the first; all end with the same bits."""
    (run,) = runs["training"]
    assert len(run["metrics"]["loss_ratio"]) == 2
    assert [len(set(results)) for results in run["facts"]["fingerprints"].values()] == [1]


WITHOUT_GPUS = {"plugins": {"disabled": ["nvml"]}}


@pytest.mark.torch
def test_no_gpu_where_none_is_expected_is_skipped(command):
    """It succeeds, but nobody can take it for a pass."""
    ended = command("check", "run", "gemm", "--json", settings=WITHOUT_GPUS)
    assert ended.code == 0
    assert [run["verdict"] for run in ended.document["items"]] == ["SKIPPED"]


@pytest.mark.torch
def test_fewer_gpus_than_expected_fail(command, simulated):
    """Here there are two of eight, of which one can no longer be asked."""
    fewer = {"plugins": simulated(2, {"kind": "missing", "device": 1})}
    ended = command("check", "run", "gemm", "--quick", "--expect-gpus", "8", "--json", settings=fewer)
    assert ended.code == 2
    assert "gemm.devices_missing" in [finding["code"] for finding in ended.runs("gemm")[0]["findings"]]


@pytest.mark.torch
def test_gpus_that_cannot_be_asked_do_not_pass(command):
    """Without a driver nobody knows whether one of the eight is there: UNKNOWN, which is no success either."""
    ended = command("check", "run", "gemm", "--expect-gpus", "8", "--json", settings=WITHOUT_GPUS)
    assert ended.code == 3
    assert [finding["code"] for finding in ended.runs("gemm")[0]["findings"]] == ["gemm.not_asked"]


def test_what_the_tool_lacks_is_there(checks, runs):
    """Stress of the memory, the disk through fio, and NVIDIA's own programs, judged like our own check."""
    assert {"memory", "storage", "nccl_tests"} <= checks.keys()
    assert runs["memory"][0]["verdict"] == "PASS"
    assert set(checks["nccl_tests"].judged) < set(checks["collective"].judged)


@pytest.mark.torch
def test_an_operator_says_what_each_model_of_gpu_must_reach(command, simulated, tmp_path):
    """A reference of their own goes before those that come with muster."""
    references = tmp_path / "references.toml"
    references.write_text(
        """
        [[reference]]
        check = "gemm"
        metric = "tflops_fp32"
        when = { gpu_model = "NVIDIA H100 80GB HBM3 (simulated)" }
        fail_below = 1000.0
        source = "our own acceptance"
        """
    )
    settings = {"plugins": simulated(1), "references_file": str(references)}
    ended = command("check", "run", "gemm", "--quick", "--json", settings=settings)
    (finding,) = ended.runs("gemm")[0]["findings"]
    assert (ended.code, finding["code"], finding["evidence"]["source"]) == (2, "gemm.slow", "our own acceptance")
