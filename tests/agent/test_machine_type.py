"""From the label of a node to the verdict of a measurement below the floor of its machine type."""

import json

import pytest
from tests.cases import cases

from muster.check import Params, Scope
from muster.config import Settings
from muster.model import Device, Inventory, Json, MachineType, MachineTypeSource, Measurement
from muster.references import shipped
from muster_agent.acceptance.local_runner import local_runner
from muster_agent.acceptance.selection import SelectedCheck
from muster_agent.runs.labels import read_labels
from muster_plugins.checks.collective import check as collective

LABEL = "node.kubernetes.io/instance-type"
B200 = tuple(Device(index=index, uuid=f"GPU-{index}", model="NVIDIA B200") for index in range(2))
FLOOR_GBPS = 250.0


def of_two_nodes(gbps: float):
    """What a rank measures in an all_gather between two nodes."""
    facts: Json = {"backend": "nccl", "collective": "all_gather", "nodes": 2, "size_bytes": 1 << 30, "simulated": False}

    def measure(_params: Params, context) -> Measurement:
        context.rendezvous()
        known: Json = {**facts, "missing": [], "devices": [0]}
        return Measurement(metrics={"busbw_gbps": gbps, "latency_us": 50.0, "wrong_elements": 0.0}, facts=known)

    return measure


@pytest.fixture
def verdict_of(check, plugins_with, launched, tmp_path):
    """The run of a collective on a node with such labels, settings and answer of its cloud."""

    async def make(gbps: float, labels: dict[str, str], setting: str | None = None, cloud: str | None = None):
        (tmp_path / "labels").write_text(json.dumps(labels))
        measured = check(
            of_two_nodes(gbps),
            name="collective",
            scope=Scope.GROUP,
            judge=collective.judge,
            judged=("busbw_gbps", "latency_us"),
        )
        said = [] if cloud is None else [MachineType(name=cloud, source=MachineTypeSource.CLOUD, said_by="a cloud")]
        hooks = {"muster_inventory": lambda: Inventory(devices=B200), "muster_machine_types": lambda: said}
        agent = {"labels_file": tmp_path / "labels", "machine_type": setting}
        settings = Settings.model_validate({"node": "n", "data_dir": tmp_path, "agent": agent})
        async with local_runner(launched(measured, **hooks), settings, shipped(), lambda *_: None) as machine:
            return await machine.run(SelectedCheck(check=measured, params=measured.params(), timeout_s=20.0))

    return make


async def test_a_label_chooses_the_floor(verdict_of):
    """Below the floor of A4 is a FAIL with the bound and its source; above it is a PASS."""
    slow = await verdict_of(FLOOR_GBPS - 1, {LABEL: "a4-highgpu-8g"})
    assert slow.verdict == "FAIL"
    assert slow.facts["machine_type"] == "a4-highgpu-8g"
    (found, *_) = [finding for finding in slow.findings if finding.code == "collective.slow"]
    assert found.evidence["bound"] == FLOOR_GBPS
    assert "Google" in str(found.evidence["source"])
    fast = await verdict_of(FLOOR_GBPS + 1, {LABEL: "a4-highgpu-8g"})
    assert (fast.verdict, fast.findings) == ("PASS", ())


@pytest.mark.parametrize(
    ("labels", "setting", "cloud", "verdict"),
    [
        ({"beta.kubernetes.io/instance-type": "a4-highgpu-8g"}, None, None, "FAIL"),
        ({}, None, "a4-highgpu-8g", "FAIL"),
        ({}, "a4-highgpu-8g", None, "FAIL"),
        ({LABEL: "a4-highgpu-8g"}, "a3-highgpu-8g", "a4-highgpu-8g", "PASS"),
        ({LABEL: "a3-highgpu-8g"}, None, "a4-highgpu-8g", "PASS"),
    ],
    ids=["former label", "cloud", "setting", "the operator's word", "the label before the cloud"],
)
async def test_each_source_chooses_the_floor(verdict_of, labels, setting, cloud, verdict):
    """150 GB/s is too slow for A4, and well above the floor of A3 High."""
    assert (await verdict_of(150.0, labels, setting, cloud)).verdict == verdict


async def test_without_a_machine_type_the_run_names_the_references_that_wait(verdict_of):
    """As a note, beside the metrics that nothing judges."""
    run = await verdict_of(FLOOR_GBPS - 1, {})
    (note, *_) = run.findings
    assert (run.verdict, note.code, note.severity) == ("PASS", "run.not_judged", "INFO")
    assert note.evidence["metrics"] == ["busbw_gbps", "latency_us"]
    assert "the machine type is unknown, and references wait for it (" in note.summary
    assert '"a4-highgpu-8g"' in note.summary
    assert note.summary.endswith("set agent.machine_type on the node")


@cases("text", [f'{LABEL}="a4-highgpu-8g"\n', json.dumps({"metadata": {"labels": {LABEL: "a4-highgpu-8g"}}})])
def test_the_label_is_read_in_each_form_of_the_file(tmp_path_factory, text):
    """As the downward API and as kubectl write it."""
    path = tmp_path_factory.mktemp("labels") / "labels"
    path.write_text(text)
    assert read_labels(path)[LABEL] == "a4-highgpu-8g"
