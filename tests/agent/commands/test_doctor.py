"""What is said about the devices and the machine type of a node."""

import pytest
from tests.cases import cases

from muster.model import Device, Inventory, MachineType, MachineTypeSource, Verdict
from muster_agent.commands.doctor import agent_found, devices_found, machine_type_found

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL


@pytest.mark.parametrize(
    ("devices", "expected", "out_of_reach", "verdict", "words"),
    [
        (2, None, [], PASS, "2 devices found: H100"),
        (2, 2, [], PASS, "2 devices found: H100"),
        (1, 2, [], FAIL, "1 device found, and expected_gpus is 2"),
        (0, None, [], WARN, "this node has no GPU"),
        (0, 0, [], PASS, "0 devices found"),
        (0, 8, [], FAIL, "0 devices found, and expected_gpus is 8"),
        (0, 8, ["/dev/nvidia0"], FAIL, "may not open /dev/nvidia0: add the user to the file's group"),
    ],
)
def test_devices_are_counted(devices, expected, out_of_reach, verdict, words):
    """Against what there should be; files that cannot be opened explain what is missing."""
    found = Inventory(devices=tuple(Device(index=n, uuid=f"GPU-{n}", model="H100") for n in range(devices)))
    said = devices_found(found, expected, out_of_reach)
    assert (said.verdict, words in said.detail) == (verdict, True), said


@cases(
    ("listen", "health", "verdict", "words"),
    [
        ("127.0.0.1:8788", {"broker_connected": True}, PASS, "it runs, and is connected"),
        ("127.0.0.1:8788", {"broker_connected": False}, WARN, "not connected to the broker; its log says why"),
        ("127.0.0.1:8788", None, WARN, "no agent answers at 127.0.0.1:8788; start it"),
        ("127.0.0.1:0", None, WARN, "nobody knows the port of an agent that runs"),
    ],
)
def test_a_running_agent_is_asked(listen, health, verdict, words):
    """An agent on a port that the kernel has chosen is not taken for one that does not run."""
    found = agent_found(listen, health)
    assert (found.verdict, words in found.detail) == (verdict, True), found


def said(name: str, source: MachineTypeSource, said_by: str) -> MachineType:
    return MachineType(name=name, source=source, said_by=said_by)


LABELLED = said("a4", MachineTypeSource.LABEL, "a/label")


@cases(
    ("sources", "waiting", "verdict", "words"),
    [
        ([LABELLED], (), PASS, "a4 (label a/label)"),
        (
            [LABELLED, said("XE9680", MachineTypeSource.DMI, "product_name")],
            (),
            PASS,
            "a4 (label a/label); also XE9680 (firmware, product_name)",
        ),
        (
            [LABELLED, said("a3", MachineTypeSource.CLOUD, "X")],
            (),
            WARN,
            "sources disagree, the first one counts: a4 (label a/label), a3 (metadata server of X); to decide, "
            "set agent.machine_type on the node",
        ),
        ([], (), PASS, "unknown; no reference waits for it"),
        (
            [],
            ("collective busbw_gbps (a4)",),
            WARN,
            "unknown, and references wait for it: collective busbw_gbps (a4); set agent.machine_type on the node",
        ),
    ],
)
def test_the_machine_type_is_named_with_its_source(sources, waiting, verdict, words):
    """What is missing or contradicts comes with what to set."""
    name = sources[0].name if sources else None
    found = machine_type_found(Inventory(machine_type=name, machine_types=tuple(sources)), waiting)
    assert found == ("machine type", verdict, words)
