"""What of the software beside the ports the check `fabric` looks for."""

from pathlib import Path

import pytest
from tests.plugins.checks.fabric.node import GPU


def test_gib_is_looked_for_where_it_is_expected(tree, node, tmp_path):
    """Libraries and configuration, by patterns that the settings may change."""
    tree.plug("mlx5_0", layer="Ethernet")
    files = [str(tmp_path / "gib/lib64/libnccl-net*.so"), str(tmp_path / "gib/configs/*.txtpb")]
    library, configuration = Path(files[0].replace("*", "_internal")), Path(files[1].replace("*", "tuner_config_a4"))
    assert node(gib_files=files).look() == {}
    finding = node(expect="gib", gib_files=files).findings()["fabric.gib_missing"]
    assert (finding.severity, finding.evidence["listed"]) == ("ERROR", files)
    for path in (library, configuration):
        path.parent.mkdir(parents=True)
        path.touch()
    assert node(expect="gib", gib_files=files).look() == {}


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.230.02  Fri Jan 10 16:20:30 UTC 2025\n"


@pytest.mark.parametrize(
    ("module", "kernel", "driver", "expected"),
    [
        ("nvidia_peermem", "5.4.0", PROPRIETARY, {}),
        (None, "6.8.0-1021-gcp", OPEN, {}),
        (None, "5.12.0", OPEN, {}),
        (None, "5.4.0-190-generic", OPEN, {"fabric.no_gpu_direct": "WARNING"}),
        (None, "6.8.0", PROPRIETARY, {"fabric.no_gpu_direct": "WARNING"}),
        (None, "6.8.0", None, {"fabric.gpu_direct_unknown": "UNKNOWN"}),
        (None, "strange", OPEN, {"fabric.gpu_direct_unknown": "UNKNOWN"}),
        ("efa_nv_peermem", "5.4.0", PROPRIETARY, {}),
    ],
)
def test_a_way_to_gpu_memory(tree, node, *, module, kernel, driver, expected):
    """A peer memory module, or dma-buf with a kernel since 5.12 and open driver modules; only where GPUs are."""
    tree.plug("mlx5_0")
    if module:
        (tree.root / "sys/module" / module).mkdir(parents=True)
    (tree.root / "proc/sys/kernel").mkdir(parents=True)
    (tree.root / "proc/sys/kernel/osrelease").write_text(kernel + "\n")
    if driver:
        (tree.root / "proc/driver/nvidia").mkdir(parents=True)
        (tree.root / "proc/driver/nvidia/version").write_text(driver)
    assert node().look(GPU) == expected
    assert node().look() == {}
    (tree.root / "sys/class/infiniband/mlx5_0/ports/1/link_layer").write_text("Ethernet\n")
    assert node(expect="roce").look(GPU) == expected
    assert node().look(GPU) == dict.fromkeys(expected, "SKIPPED"), "a network card like any other"
