"""The acceptance tool that trains ResNets and a Transformer: what it offers, and what it does badly.

Not held here: Jobs of Kubernetes that are cleaned up, which are not there yet, and a real Slurm; figures of GPUs are
judged, not measured.
"""

import pickle

import pytest
from PIL import Image

from muster.references import Reference, shipped
from muster_agent.acceptance.job import detect
from muster_plugins.checks.collective.check import GroupParams
from muster_plugins.checks.training.task import TaskParams, planned
from muster_plugins.shared.nccl.environment import profiles

TINY = {"batch_size": 2, "warmup": 1, "iterations": 4}

TRAININGS = [
    {"model": "resnet18", "data": "fashion_mnist"},
    {"model": "mlp", "data": "imagenet"},
    {"model": "resnet50", "data": "cifar10", "precision": "bf16"},
    {"model": "mlp", "data": "cifar100"},
    {"model": "transformer", "precision": "fp16"},
]
"""Every model, data set and precision once."""

TOGETHER = {"section": "TRAIN", "check": "training_ddp", "params": {"warmup": 2, "iterations": 10}}
ALL_REDUCE = {"section": "COLLECTIVE", "check": "collective", "params": {"size_bytes": "64K", "iterations": 3}}


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


@pytest.fixture(scope="module")
def data(tmp_path_factory, with_torch):
    """A few images of each data set, in the files in which it is published."""
    import numpy as np  # noqa: PLC0415  comes with torch, which may be missing

    def images(*shape):
        return generator.integers(256, size=shape, dtype=np.uint8)

    generator = np.random.default_rng(7)
    root = tmp_path_factory.mktemp("data")
    fashion, ten, hundred = (root / name for name in ("fashion_mnist", "cifar-10-batches-py", "cifar-100-python"))
    classes = [root / "imagenet" / "train" / wordnet_id for wordnet_id in ("n01440764", "n01443537")]
    for directory in (fashion, ten, hundred, *classes):
        directory.mkdir(parents=True)
    (fashion / "train-images-idx3-ubyte").write_bytes(idx(images(8, 28, 28)))
    (fashion / "train-labels-idx1-ubyte").write_bytes(idx(np.arange(8, dtype=np.uint8)))
    for number in range(1, 6):
        (ten / f"data_batch_{number}").write_bytes(pickle.dumps({b"data": images(8, 3072), b"labels": [*range(8)]}))
    (hundred / "train").write_bytes(pickle.dumps({b"data": images(8, 3072), b"fine_labels": [*range(8)]}))
    for directory in classes:
        Image.fromarray(images(250, 300, 3)).save(directory / f"{directory.name}_1.JPEG")
    return root


@pytest.fixture(scope="module")
def trained(command, data, simulated):
    """The runs of all trainings, on a node with one device."""
    steps = [{"section": "TRAIN", "check": "training", "params": TINY | params} for params in TRAININGS]
    settings = {"plugins": simulated(1) | {"training": {"data_dir": str(data)}}, "suites": {"all": {"steps": steps}}}
    return command("check", "run", "--suite", "all", "--json", settings=settings).runs("training")


@pytest.fixture(scope="module")
def mixed(job, simulated, with_torch):
    """A training and an all-reduce over a node with two devices and one without any."""
    return job([TOGETHER, ALL_REDUCE], [{"plugins": simulated(2)}, {"plugins": {"disabled": ["nvml"]}}])


@pytest.fixture(scope="module")
def together(mixed):
    """The run of the training at the node of rank 0."""
    return mixed[0].runs("training_ddp")[0]


# What it offers


@pytest.mark.parametrize("number", range(len(TRAININGS)), ids=lambda number: "-".join(TRAININGS[number].values()))
def test_every_model_and_data_set_trains(trained, number):
    """Each for some steps, with a finite loss at the end."""
    run = trained[number]
    assert run["verdict"] == "PASS", run["findings"]
    assert {name: run["facts"][name] for name in TRAININGS[number]} == TRAININGS[number]
    assert run["metrics"]["loss_last"][0] > 0


def test_a_training_is_as_long_as_the_tools_by_default():
    """On GPUs; data is made up unless something else is asked for."""
    plan = planned(TaskParams(model="resnet50"), "cuda")
    assert (plan.batch_size, plan.warmup, plan.iterations, plan.data) == (32, 50, 100, "synthetic")


def test_the_result_holds_what_the_tool_reports(together):
    """And the time that was spent in collectives."""
    facts, metrics = together["facts"], together["metrics"]
    assert (facts["model"], facts["backend"], facts["world_size"], facts["device"]) == ("mlp", "gloo", 3, 0)
    assert facts["global_batch_size"] == 3 * facts["batch_size_per_gpu"]
    assert metrics["average_step_time_s"] == pytest.approx(metrics["total_time_s"] / 10)
    assert {"throughput_samples_per_s", "total_samples", "collective_time_s"} <= metrics.keys()


TORCH = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "gpu1",
    "MASTER_PORT": "29500",
}

SLURM = {
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "SLURM_NODELIST": "gpu[1-2]",
}


@pytest.mark.parametrize("environment", [TORCH, TORCH | {"TORCHELASTIC_RUN_ID": "1"}, SLURM])
def test_a_process_knows_its_place_from_the_environment(environment):
    """Of an operator of Kubernetes, of torchrun, or of Slurm."""
    found = detect(environment)
    assert found is not None
    assert (found.rank, found.size, found.local_rank, found.address) == (5, 8, 1, "gpu1")


def test_without_any_of_them_a_process_is_alone():
    """As on bare metal."""
    assert detect({"PATH": "/usr/bin"}) is None


@pytest.mark.parametrize(
    ("profile", "transport", "variables"),
    [
        ("nvlink", "P2P", {"NCCL_P2P_LEVEL": "NVL"}),
        ("net-forced", "NET", {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_ALGO": "Ring"}),
        ("ib", "NET/IB", {"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "mlx5", "NCCL_IB_TIMEOUT": "23"}),
        ("roce", "NET/IB", {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "106", "NCCL_NET_GDR_LEVEL": "5"}),
    ],
)
def test_ways_to_run_nccl_are_profiles(profile, transport, variables):
    """With what NCCL must then report."""
    assert profiles()[profile].transport == transport
    assert variables.items() <= profiles()[profile].environment.items()


@pytest.mark.parametrize(("begin", "end", "sizes"), [("8K", "8G", 21), ("8", "1K", 8)])
def test_bandwidth_and_latency_have_their_sizes(begin, end, sizes):
    """From 8 KiB to 8 GiB for the one, up to 1 KiB for the other."""
    assert len(GroupParams.model_validate({"begin_bytes": begin, "end_bytes": end}).sizes(default=0)) == sizes


SCALES_BADLY = "training_ddp.scales_badly"


@pytest.mark.parametrize(("gpus", "floor"), [(8, 0.95), (16, 0.90), (32, 0.85), (64, 0.80)])
@pytest.mark.parametrize(
    ("of_the_floor", "expected"), [(1.01, []), (0.97, [(SCALES_BADLY, "WARNING")]), (0.89, [(SCALES_BADLY, "ERROR")])]
)
def test_scaling_is_judged_by_the_playbook(judge, gpus, floor, of_the_floor, expected):
    """Up to 10 % below what is asked of so many GPUs warns, more fails."""
    rank = {"task": "of all", "kind": "a GPU", "fingerprint": "9d8b"}
    facts = {"backend": "nccl", "model": "resnet50", "world_size": gpus, "missing": []}
    facts |= {"rank": 0, "device": 0, "ranks": [rank], "weights": ["44ab"]}
    assert judge("training_ddp", {"scaling_efficiency": floor * of_the_floor}, facts) == expected


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("throughput_spread", 0.05, []),
        ("throughput_spread", 0.06, [("training.uneven", "WARNING")]),
        ("utilisation_percent", 90.0, []),
        ("utilisation_percent", 89.0, [("training.underused", "WARNING")]),
    ],
)
def test_trainings_are_alike_and_keep_the_devices_busy(judge, metric, value, expected):
    """Within 5 % of each other, and above 90 %."""
    facts = {"backend": "cuda", "model": "transformer", "batch_size_per_gpu": 32, "missing": [], "devices": [0]}
    assert judge("training", {metric: [value]}, facts) == expected


@pytest.mark.parametrize(("drift", "expected"), [(0.19, []), (0.21, [("training.drift", "ERROR")])])
def test_steps_that_become_slower_fail(judge, drift, expected):
    """By more than 20 % from the beginning to the end."""
    facts = {"backend": "cuda", "iterations": 100, "devices": [0], "missing": []}
    assert judge("training", {"step_time_drift": [drift]}, facts) == expected


@pytest.mark.parametrize(("model", "limit"), [("NVIDIA H100 80GB HBM3", 85.0), ("NVIDIA A100-SXM4-80GB", 80.0)])
def test_heat_has_the_limits_of_the_playbook(model, limit):
    """Where the device does not tell its own."""
    (row,) = [row for row in shipped() if row.metric == "temperature_c" and row.when == {"gpu_model": model}]
    assert row.warn_above == limit


def test_an_ecc_error_fails(command, simulated):
    """One is enough."""
    settings = {"plugins": simulated(2, {"kind": "ecc", "device": 1})}
    ended = command("check", "run", "simulated", "--json", settings=settings)
    (finding,) = ended.runs("simulated")[0]["findings"]
    assert (ended.code, finding["severity"], finding["device"]) == (2, "ERROR", 1)


def test_xids_and_pcie_errors_are_looked_for(checks):
    """By the driver's events and in the kernel's log."""
    assert {"kernel_log.xid", "kernel_log.pcie_uncorrected"} <= checks["kernel_log"].finds.keys()
    assert "nvml.xid" in checks["nvml"].finds


@pytest.mark.parametrize(
    ("speed", "expected"), [(0.96, []), (0.94, [("training.slow", "WARNING")]), (0.89, [("training.slow", "ERROR")])]
)
def test_a_throughput_is_held_against_the_operators_baseline(judge, speed, expected):
    """Up to 10 % below it warns, more fails; nobody has published figures that could come with muster."""
    metric = "throughput_samples_per_s"
    baseline = Reference(check="training", metric=metric, warn_below=950, fail_below=900, source="our own run")
    facts = {"model": "resnet50", "devices": [0], "missing": []}
    assert judge("training", {metric: [1000 * speed]}, facts, baseline) == expected


def test_nodes_without_gpus_take_part(mixed, together):
    """They bring one rank to a group, which then talks through gloo."""
    assert [member.code for member in mixed] == [0, 0], mixed[0].err
    assert together["facts"]["nodes"] == 2


# What it does badly


def test_samples_count_once(together):
    """Those of all ranks in the time of the slowest, whatever the size of the world."""
    facts, metrics = together["facts"], together["metrics"]
    assert metrics["total_samples"] == facts["global_batch_size"] * 10
    assert metrics["throughput_samples_per_s"] == pytest.approx(metrics["total_samples"] / metrics["total_time_s"])


def test_the_loss_is_looked_at(judge):
    """One that is no number convicts the device."""
    facts = {"devices": [0, 1], "models": ["GPU", "GPU"], "fingerprints": {"task": ["a", "a"]}, "missing": []}
    assert judge("training", {"loss_last": [0.1, None]}, facts) == [("training.loss_not_finite", "ERROR")]


def test_every_device_brings_a_process(together):
    """Nobody can ask for eight GPUs and measure one."""
    assert len(together["facts"]["ranks"]) == together["facts"]["world_size"] == 3


def test_a_program_that_is_not_there_is_no_pass(command):
    """What others bring is looked for, and skipped with the reason."""
    ended = command("check", "run", "nccl_tests", "dcgm", "--json", settings={"plugins": {"disabled": ["nvml"]}})
    assert {run["verdict"] for run in ended.document["items"]} == {"SKIPPED"}


DENSE_PEAKS: dict[str, dict[str, float]] = {
    "tflops_tf32": {"A100": 156, "H100": 494.5, "H200": 494.5, "B200": 1125},
    "tflops_bf16": {"A100": 312, "H100": 989, "H200": 989, "B200": 2250},
    "tflops_fp16": {"A100": 312, "H100": 989, "H200": 989, "B200": 2250},
    "tflops_fp8": {"H100": 1979, "H200": 1979, "B200": 4500},
}
"""TFLOP/s of the datasheets, without sparsity."""


@pytest.mark.parametrize("row", [row for row in shipped() if row.metric in DENSE_PEAKS], ids=lambda row: row.key)
def test_no_floor_is_near_or_above_what_the_hardware_can_do(row):
    """At most 80 % of the peak of the least model that it is for."""
    named = str(row.when["gpu_model"])
    least = min(peak for model, peak in DENSE_PEAKS[row.metric].items() if model in named)
    assert max(row.bounds.values()) <= 0.8 * least


def test_bandwidth_of_the_algorithm_and_of_the_bus_are_two_figures(mixed):
    """They differ by 2 (n - 1) / n in an all-reduce over n ranks, here three."""
    metrics = mixed[0].runs("collective")[0]["metrics"]
    assert metrics["busbw_gbps"] / metrics["algbw_gbps"] == pytest.approx(4 / 3)


def test_grey_images_become_what_a_network_for_colours_reads(trained):
    """Fashion-MNIST has one channel, ResNet takes three."""
    assert [run["verdict"] for run in trained if run["facts"]["data"] == "fashion_mnist"] == ["PASS"]
