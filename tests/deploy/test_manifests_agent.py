"""The agent's DaemonSet: it runs where nothing else may, takes nothing from anybody, and may no more than it must."""

import tomllib

import pytest

from muster.addresses import split_address
from muster.config import Settings
from muster_agent.runs.plan_settings import RESIDENT_BYTES

OURS = ("muster.dev/quarantine", "muster.dev/accepting", "muster.dev/testing")
OTHERS = ("nvidia.com/gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "example.com/team")

GKE = {"gke", "gke-a4", "gke-a3u", "everything"}
"""The variants for nodes on which Google installs the driver."""

PRIVILEGES = {
    "rdma": {"privileged": False, "root": True, "add": {"IPC_LOCK"}},
    "kernel-log": {"privileged": True, "root": True, "add": {"SYSLOG"}},
    "gke": {"privileged": True, "root": False, "add": set()},
    "gke-a4": {"privileged": True, "root": True, "add": {"IPC_LOCK"}},
    "gke-a3u": {"privileged": True, "root": True, "add": {"IPC_LOCK"}},
    "everything": {"privileged": True, "root": True, "add": {"IPC_LOCK", "SYSLOG"}},
}
"""By variant, what the agent's container may; nothing in all others."""

HOST_PATHS = {
    "kernel-log": {"/dev/kmsg"},
    "gke": {"/home/kubernetes/bin/nvidia"},
    "gke-gib": {"/home/kubernetes/bin/gib"},
    "gke-a4": {"/home/kubernetes/bin/nvidia", "/home/kubernetes/bin/gib"},
    "gke-a3u": {"/home/kubernetes/bin/nvidia", "/home/kubernetes/bin/gib"},
    "everything": {"/dev/kmsg", "/home/kubernetes/bin/nvidia", "/home/kubernetes/bin/gib"},
}
"""By variant, what of the node's files the agent sees."""


@pytest.fixture
def pod(pods):
    return pods["muster-agent"]


@pytest.fixture
def container(pod):
    (only,) = pod["containers"]
    return only


def tolerates(pod, key, effect):
    """Whether one of the pod's tolerations is for the taint: no key is for all keys, no effect for all effects."""
    return any(
        toleration.get("key", key) == key
        and toleration.get("effect", effect) == effect
        and toleration.get("operator") == "Exists"
        for toleration in pod["tolerations"]
    )


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@pytest.mark.parametrize("key", OURS + OTHERS)
def test_no_taint_keeps_the_agent_away(pod, key, effect):
    """Neither ours nor another's: a node that is out of service is looked at until it is well."""
    assert tolerates(pod, key, effect)


def test_agent_takes_nothing_from_anybody(container):
    """No GPU is requested, and at rest it needs next to nothing."""
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "64Gi"}}
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in container["env"]


def test_agent_has_no_pod_preempted(manifests, pod):
    """It is scheduled first where there is room; a full node keeps its work."""
    priority = manifests["PriorityClass", pod["priorityClassName"]]
    assert priority["preemptionPolicy"] == "Never"
    assert priority["value"] > 0


def test_a_run_ends_before_the_agent(manifests, pod, container):
    """At its own limit: at the container's, both are killed. Shared memory and resident processes count there, too."""
    settings = tomllib.loads(manifests["ConfigMap", "muster-settings"]["data"]["muster.toml"])
    (shared,) = [volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"] if volume["name"] == "shared-memory"]
    taken_gib = settings["agent"]["memory_limit_gib"] + int(shared.removesuffix("Gi")) + 2 * RESIDENT_BYTES / 2**30
    assert taken_gib + 1 <= int(container["resources"]["limits"]["memory"].removesuffix("Gi"))


def test_privileges_are_those_that_the_component_is_for(variant, pod, container):
    """By default none: a user of its own, without capabilities and without any of the node's files."""
    expected = PRIVILEGES.get(variant, {"privileged": False, "root": False, "add": set()})
    context = pod["securityContext"] | container["securityContext"]
    assert context.get("privileged", False) is expected["privileged"]
    assert (context["runAsUser"] == 0) is (not context["runAsNonRoot"]) is expected["root"]
    assert context["capabilities"]["drop"] == ["ALL"]
    assert set(context["capabilities"]["add"]) == expected["add"]
    assert context["allowPrivilegeEscalation"] is expected["privileged"]  # Kubernetes refuses anything else
    assert context["readOnlyRootFilesystem"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    paths = {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    assert paths == HOST_PATHS.get(variant, set())


def test_node_is_shared_as_far_as_the_checks_need_it(pod):
    """Its process ids for the idle probe of NVML, its network for NCCL, nothing for shared memory."""
    assert pod["hostPID"] is True
    assert pod["hostNetwork"] is True
    assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"  # without it, the broker's name is unknown there
    assert "hostIPC" not in pod


def test_runtime_is_the_one_that_gives_gpus(variant, pod):
    """But for GKE, which has none."""
    assert pod.get("runtimeClassName") == (None if variant in GKE else "nvidia")


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe"])
def test_probes_ask_where_the_agent_listens(container, probe):
    """On the loopback that the pod shares with the kubelet."""
    asked = container[probe]["httpGet"]
    assert (asked["host"], asked["port"]) == split_address(Settings().agent.listen)
    assert asked["path"] == "/healthz"


def test_agent_is_told_who_it_is(container):
    """By the downward API: its node, the node's address, and the pod that does not count as work."""
    told = {each["name"]: each["valueFrom"] for each in container["env"] if "valueFrom" in each}
    assert told == {
        "MUSTER_NODE": {"fieldRef": {"fieldPath": "spec.nodeName"}},
        "MUSTER_AGENT__ADDRESS": {"fieldRef": {"fieldPath": "status.hostIP"}},
        "MUSTER_PLUGINS__KUBERNETES__POD_UID": {"fieldRef": {"fieldPath": "metadata.uid"}},
    }


def test_update_leaves_most_agents_alone(manifests):
    """A new version comes to few nodes at a time: each is away meanwhile, and takes its place in the budget."""
    strategy = manifests["DaemonSet", "muster-agent"]["spec"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "2%"}}


@pytest.mark.parametrize("overlay", ["dry-run", "enforce"])
def test_another_mode_restarts_no_agent(overlay, kustomize):
    """It changes the coordinator and its own settings, and nothing that an agent is started with."""
    before, after = kustomize({"resources": ["../observe"]}), kustomize({"resources": [f"../{overlay}"]})
    changed = {key for key, document in before.items() if after[key] != document}
    assert changed == {("Deployment", "muster-coordinator"), ("ConfigMap", "muster-coordinator-environment")}
