"""What is said about the devices of a node."""

import pytest

from muster.model import Device, Inventory, Verdict
from muster_agent.commands.doctor import devices_found

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
