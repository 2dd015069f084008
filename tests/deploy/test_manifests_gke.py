"""The overlays for Google's A4 and A3 Ultra: the checks measure the node's gIB and say whether NCCL used it."""

import fnmatch
from pathlib import PurePath

import pytest
import yaml
from tests.deploy.test_manifests import ROOT, environment

from muster.config import Config, load
from muster_plugins.checks.collective.check import CollectiveSettings
from muster_plugins.checks.fabric.check import FabricSettings
from muster_plugins.checks.nccl_tests.check import NcclTestsSettings
from muster_plugins.shared.nccl.environment import environment_for, profiles

KINDS = {"gke-a4": ("gib-a4", "nvidia-b200"), "gke-a3u": ("gib-a3u", "nvidia-h200-141gb")}
"""By overlay, the profile of NCCL and the GPU in the label of its nodes."""

NETWORKS = ROOT / "docs" / "examples" / "gke" / "networks.yaml"

only_gke = pytest.mark.parametrize("variant", KINDS, indirect=True)


@pytest.fixture
def pod(pods):
    return pods["muster-agent"]


@pytest.fixture
def variables(pod, manifests):
    (container,) = pod["containers"]
    return environment(container, manifests)


@pytest.fixture
def config(variables):
    return Config(load(None, variables))


@pytest.fixture
def mounted(pod):
    """By path in the container, the path on the node."""
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    (container,) = pod["containers"]
    return {each["mountPath"]: paths[each["name"]] for each in container["volumeMounts"] if each["name"] in paths}


@only_gke
def test_nccl_and_gib_are_those_of_the_node(variables, mounted):
    """As in Google's own manifests, so that the agent loads what jobs load; an image's gIB is hidden."""
    assert mounted == {
        "/usr/local/nvidia": "/home/kubernetes/bin/nvidia",
        "/usr/local/gib": "/home/kubernetes/bin/gib",
    }
    assert variables["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"


@only_gke
def test_what_the_checks_read_of_gib_is_the_node_s(config, mounted):
    """The script with its values, the files of its tuner and the libraries that must be there."""
    collective, fabric = config.plugin("collective", CollectiveSettings), config.plugin("fabric", FabricSettings)
    tuner = environment_for(collective.profile, collective, None)["NCCL_TUNER_CONFIG_PATH"]
    for path in (collective.gib_script, tuner, *fabric.gib_files):
        assert PurePath(path).is_relative_to("/usr/local/gib")
        assert "/usr/local/gib" in mounted


@only_gke
def test_another_transport_than_gib_is_found(config, variant):
    """Both checks that use NCCL have the profile of the machine, which expects gIB."""
    profile, _ = KINDS[variant]
    for name, settings in (("collective", CollectiveSettings), ("nccl_tests", NcclTestsSettings)):
        assert config.plugin(name, settings).profile == profile
    assert profiles()[profile].transport == "NET/gIB"


@only_gke
def test_a_node_has_eight_gpus_and_eight_ports(config):
    """A missing one is an error from the start, whatever was there before."""
    assert config.settings.expected_gpus == 8
    fabric = config.plugin("fabric", FabricSettings)
    assert (fabric.expect, fabric.ports) == ("gib", 8)


@only_gke
def test_agents_run_on_that_machine_only(pod, variant):
    """The settings fit no other."""
    assert pod["nodeSelector"] == {"cloud.google.com/gke-accelerator": KINDS[variant][1]}


@only_gke
def test_the_coordinator_learns_where_nodes_stand(manifests):
    """It may list nodes, and so reads the labels that put ranks in order; it is not told to drain."""
    data = manifests["ConfigMap", "muster-coordinator-environment"]["data"]
    assert data == {"MUSTER_PLUGINS__KUBERNETES__ACTOR__ENABLED": "true"}


@pytest.mark.parametrize("overlay", KINDS)
def test_the_overlay_says_that_nobody_has_applied_it(overlay):
    """Somebody who reads it must not take assumptions for experience."""
    text = (ROOT / "daemonset" / "overlays" / overlay / "kustomization.yaml").read_text(encoding="utf-8")
    assert "Never applied to a live cluster" in text


def test_every_network_has_its_parameters():
    """One for the second network card and one for each of the eight ports, under the names that pods use."""
    objects = list(yaml.safe_load_all(NETWORKS.read_text(encoding="utf-8")))
    parameters = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "GKENetworkParamSet"}
    networks = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "Network"}
    assert parameters.keys() == networks.keys() == {"gvnic-1", *(f"rdma-{port}" for port in range(8))}
    for name, spec in networks.items():
        assert spec["parametersRef"] == {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": name}
        assert parameters[name]["deviceMode"] == ("RDMA" if fnmatch.fnmatch(name, "rdma-*") else "NetDevice")
    assert len({spec["vpcSubnet"] for spec in parameters.values()}) == 9
