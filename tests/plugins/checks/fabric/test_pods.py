"""Ports that a pod has taken into its network namespace: they are not missing, and nobody calls them healthy."""

import pytest

ELSEWHERE = {"fabric.port_elsewhere": "SKIPPED"}


@pytest.fixture
def two_ports(tree):
    """A node whose kernel shows an RDMA device in one namespace only."""
    tree.share(exclusively=True)
    for device in ("mlx5_0", "mlx5_1"):
        tree.plug(device, layer="Ethernet")
    return tree


@pytest.mark.parametrize("table", [{}, {"ports": 2}, {"devices": {"mlx5_0": 400, "mlx5_1": 400}}])
def test_a_port_that_a_pod_takes_is_not_missing(two_ports, node, table):
    """However long the job runs; it is named, and is as before when it is back."""
    watched = node(**table)
    assert watched.look() == {}
    two_ports.move_to_pod("mlx5_1")
    watched.clock += 3600
    finding = watched.findings()["fabric.port_elsewhere"]
    assert (finding.severity, finding.evidence["listed"]) == ("SKIPPED", ["mlx5_1"])
    assert watched.look() == ELSEWHERE
    two_ports.plug("mlx5_1", layer="Ethernet")
    assert watched.look() == {}


@pytest.mark.parametrize("table", [{"ports": 2}, {"devices": {"mlx5_0": 400, "mlx5_1": 400}}])
def test_an_agent_that_starts_while_a_job_has_all_ports_finds_none_missing(two_ports, node, table):
    """It has never seen them, so it names their PCI addresses."""
    for device in ("mlx5_0", "mlx5_1"):
        two_ports.move_to_pod(device)
    watched = node(**table)
    assert watched.look() == ELSEWHERE
    assert watched.findings()["fabric.port_elsewhere"].evidence["listed"] == ["0000:00:00.0", "0000:01:00.0"]


def test_a_port_whose_function_is_gone_is_missing_whoever_has_the_other(two_ports, node):
    """A pod takes no function off the bus."""
    watched = node(ports=2)
    assert watched.look() == {}
    two_ports.unplug("mlx5_0")
    two_ports.move_to_pod("mlx5_1")
    missing = watched.findings()["fabric.ports_missing"]
    assert (missing.severity, missing.evidence["listed"]) == ("ERROR", ["mlx5_0/1 not there"])


@pytest.mark.parametrize("exclusively", [False, None])
def test_where_devices_are_in_sight_of_all_a_missing_one_is_missing(tree, node, exclusively):
    """In the kernel's shared mode, and where an old kernel has no modes."""
    if exclusively is not None:
        tree.share(exclusively=exclusively)
    tree.plug("mlx5_0")
    watched = node()
    assert watched.look() == {}
    tree.move_to_pod("mlx5_0")
    assert watched.look() == {"fabric.port_down": "WARNING"}
