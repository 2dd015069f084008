"""docs/examples/gke: the API servers would take it, and its parts fit each other. Nobody has applied it."""

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from generator.kustomize import build, read
from tests.cases import cases
from tests.deploy.custom_resources import problems
from tests.deploy.test_examples import environment, understood

from muster import plugins
from muster.config import Config, load
from muster.topology_labels import KNOWN
from muster_agent.acceptance.job import AcceptanceJob, detect
from muster_agent.acceptance.suites import AcceptanceRequest, plan_of
from muster_plugins.notifiers.artifacts.settings import ArtifactSettings
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings
from muster_plugins.shared.nccl.environment import profiles

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "gke"
FILES = sorted(path.name for path in EXAMPLES.iterdir())
MANIFESTS = [name for name in FILES if name.endswith(".yaml") and name != "kustomization.yaml"]
JOBS = {
    "acceptance-job.yaml": ("acceptance-0.acceptance", "gib-a3u", 2),
    "sweep.yaml": ("sweep-node-0-0.sweep", "gib-a4", 2),
    "train.yaml": ("train-node-0-0.train", "gib-a3u", 3),
}
"""By file, the first pod's name in DNS, the profile of its machine, and the number of pods."""

NETWORKS = {"default", *(f"rdma-{port}" for port in range(8))}


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")))


def of_kind(name: str, kind: str) -> dict[str, Any]:
    (found,) = (each for each in objects(name) if each["kind"] == kind)
    return found


def job(name: str) -> Any:
    """The specification of the Job in a file."""
    if name == "acceptance-job.yaml":
        return of_kind(name, "Job")["spec"]
    (replicated,) = of_kind(name, "JobSet")["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]


def all_containers(template: Any) -> list[Any]:
    return [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]


def of_muster(template: Any) -> Any:
    """The container of a pod that runs muster."""
    (container,) = (each for each in all_containers(template) if "/muster-agent:" in each["image"])
    return container


def ray_templates() -> tuple[Any, Any]:
    """The pod templates of the head and of the workers."""
    spec = of_kind("ray-cluster.yaml", "RayCluster")["spec"]
    (group,) = spec["workerGroupSpecs"]
    return spec["headGroupSpec"]["template"], group["template"]


def gpu_templates() -> list[Any]:
    """The templates of all pods that ask for GPUs."""
    return [*(job(name)["template"] for name in JOBS), ray_templates()[1]]


def tolerated(template: Any, *flavors: Any) -> set[str]:
    tolerations = [template["spec"].get("tolerations", []), *(each["spec"].get("tolerations", []) for each in flavors)]
    return {toleration.get("key", "every taint") for each in tolerations for toleration in each}


@pytest.fixture(scope="module")
def installed():
    """The documents that `kubectl apply -k docs/examples/gke` would apply."""
    return build(read(EXAMPLES), EXAMPLES)


@pytest.fixture(scope="module")
def actor(installed):
    """The settings of the actor there."""
    data = installed["ConfigMap", "muster-coordinator-environment"]["data"]
    return Config(load(None, data)).plugin("kubernetes", KubernetesSettings).actor


@pytest.fixture(scope="module")
def pools():
    """The commands that create the node pools, by the name of the pool."""
    names = {"CLUSTER": "train", "REGION": "r", "ZONE": "z", "GVNIC": "gvnic", "RDMA": "rdma", "PRINT": "1"}
    script = [str(EXAMPLES / "node-pools")]
    done = subprocess.run(script, env=os.environ | names, capture_output=True, text=True, timeout=60, check=True)
    return {line.split()[4]: line.split()[5:] for line in done.stdout.splitlines()}


@cases("name", MANIFESTS)
def test_api_servers_would_take_it(name):
    """Every field is known to Kubernetes or to muster's table of custom resources, and has a value that is allowed."""
    assert [problem for item in objects(name) for problem in problems(item)] == []


@cases("name", FILES)
def test_it_says_that_nobody_has_applied_it(name):
    """At its top, before anything else."""
    head = [line for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert " Never " in " ".join(head)


def test_script_is_clean():
    """Shellcheck has nothing to say."""
    script = ["shellcheck", str(EXAMPLES / "node-pools")]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_nodes_start_with_the_taint_that_muster_removes(pools, actor):
    """In both pools; its key begins as the cluster autoscaler expects it."""
    assert actor.startup_taint.startswith("startup-taint.cluster-autoscaler.kubernetes.io/")
    for options in pools.values():
        assert f"--node-taints={actor.startup_taint}=true:NoSchedule" in options
    assert ["--enable-queued-provisioning" in pools[name] for name in ("h200-flex", "h200-queued")] == [False, True]


def test_every_network_of_the_pods_is_one_of_the_nodes(pools):
    """A card for each: the default one, gvnic-1 and eight of RDMA."""
    for options in pools.values():
        assert sum(option.startswith("--additional-node-network=") for option in options) == 9
    there = {each["metadata"]["name"] for each in objects("networks.yaml")} | {"default"}
    for template in gpu_templates():
        annotations = template["metadata"]["annotations"]
        interfaces = json.loads(annotations["networking.gke.io/interfaces"])
        assert {each["network"] for each in interfaces} == NETWORKS <= there
        assert len({each["interfaceName"] for each in interfaces}) == len(interfaces)
        assert annotations["networking.gke.io/default-interface"] == "eth0"


def test_pods_load_gib_of_the_node():
    """From where Google's installer puts it, as the agents do."""
    for template in gpu_templates():
        paths = {each["name"]: each["hostPath"]["path"] for each in template["spec"]["volumes"] if "hostPath" in each}
        for container in all_containers(template):
            mounts = {each["mountPath"]: paths.get(each["name"]) for each in container["volumeMounts"]}
            assert mounts["/usr/local/nvidia"] == "/home/kubernetes/bin/nvidia"
            assert {"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"} in container["env"]
            uses_network = "IPC_LOCK" in container["securityContext"]["capabilities"].get("add", [])
            assert mounts.get("/usr/local/gib") == ("/home/kubernetes/bin/gib" if uses_network else None)
        assert uses_network


def test_no_work_tolerates_a_taint_of_muster(actor):
    """Neither by itself nor by the flavors of its queue: a node that is tested or out of service gets no work."""
    flavors = [
        each for name in ("queues.yaml", "sweep.yaml") for each in objects(name) if each["kind"] == "ResourceFlavor"
    ]
    for template in gpu_templates():
        assert tolerated(template, *flavors) == {"nvidia.com/gpu", "cloud.google.com/gke-queued"}
    assert set(actor.ordinary_taints) == {"nvidia.com/gpu", "cloud.google.com/gke-queued"}


def test_a_workload_has_one_podset_in_its_request():
    """GKE refuses a ProvisioningRequest with several; Kueue leaves out pods without managed resources."""
    managed = set(of_kind("queues.yaml", "ProvisioningRequestConfig")["spec"]["managedResources"])
    for templates in ([job("acceptance-job.yaml")["template"]], [job("train.yaml")["template"]], [*ray_templates()]):
        asked = [
            {name for container in each["spec"]["containers"] for name in container["resources"]["limits"]}
            for each in templates
        ]
        assert [bool(managed & resources) for resources in asked].count(True) == 1


def test_queues_lead_to_nodes():
    """Each name that Kueue follows is there, and so is the pool."""
    for name, file in (("h200", "queues.yaml"), ("a4", "sweep.yaml")):
        local, cluster = of_kind(file, "LocalQueue"), of_kind(file, "ClusterQueue")
        assert (local["metadata"]["name"], local["spec"]["clusterQueue"]) == (name, cluster["metadata"]["name"])
        flavors = {each["metadata"]["name"] for each in objects(file) if each["kind"] == "ResourceFlavor"}
        used = {flavor["name"] for group in cluster["spec"]["resourceGroups"] for flavor in group["flavors"]}
        assert used == flavors
    (check,) = of_kind("queues.yaml", "ClusterQueue")["spec"]["admissionChecksStrategy"]["admissionChecks"]
    admission = of_kind("queues.yaml", "AdmissionCheck")
    assert check["name"] == admission["metadata"]["name"]
    config = of_kind("queues.yaml", "ProvisioningRequestConfig")
    assert admission["spec"]["parameters"]["name"] == config["metadata"]["name"]


def test_workloads_wait_in_these_queues():
    """Until Kueue admits them."""
    queued = {
        "acceptance-job.yaml": ("Job", "h200"),
        "ray-cluster.yaml": ("RayCluster", "h200"),
        "sweep.yaml": ("JobSet", "a4"),
        "train.yaml": ("JobSet", "h200"),
    }
    for name, (kind, queue) in queued.items():
        workload = of_kind(name, kind)
        assert workload["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queue
        assert workload["spec"]["suspend"] is True


def test_topology_has_the_levels_that_muster_knows():
    """From the block down; the node itself is the last, without which Kueue would ignore taints."""
    *levels, last = [level["nodeLabel"] for level in of_kind("sweep.yaml", "Topology")["spec"]["levels"]]
    assert last == "kubernetes.io/hostname"
    for level, label in zip(("block", "rack", "host"), levels, strict=True):
        assert label in KNOWN[level]
    assert job("sweep.yaml")["template"]["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] in levels


@pytest.mark.parametrize("name", JOBS)
def test_each_pod_finds_the_others(name):
    """By the name that the first one has in DNS; never two on a node."""
    spec = job(name)
    container = of_muster(spec["template"])
    address, profile, size = JOBS[name]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == size
    for index in range(size):
        variables = environment(container, index)
        expected = AcceptanceJob(rank=index, size=size, local_rank=0, local_size=1, address=address, port=29400)
        assert detect(variables) == expected
        assert variables["MUSTER_PLUGINS__COLLECTIVE__PROFILE"] == profile
        load(None, variables)
    understood(container["args"])


@pytest.mark.parametrize("name", [*JOBS, "ray-cluster.yaml"])
def test_the_suite_of_a_job_exists(name, tmp_path):
    """With the settings that are mounted, every parameter of its steps is one of the check."""
    container = of_muster(ray_templates()[1] if name == "ray-cluster.yaml" else job(name)["template"])
    understood(container["args"])
    suite = next(argument.partition("=")[2] for argument in container["args"] if argument.startswith("--suite="))
    path = tmp_path / "muster.toml"
    path.write_text(of_kind(name, "ConfigMap")["data"]["muster.toml"])
    settings = load(path, {})
    found = plugins.load(Config(settings))
    asked = AcceptanceRequest(names=(), every=False, suite=suite, quick=False, params={})
    assert plan_of(asked, settings, plugins.collect_checks(found), found.failed).suite == suite


def test_a_worker_of_ray_checks_its_node_alone_before_ray_starts():
    """It has no rank. If the node fails, the pod does, and KubeRay makes another one."""
    _head, worker = ray_templates()
    preflight = of_muster(worker)
    assert preflight in worker["spec"]["initContainers"]
    assert detect(environment(preflight, 0)) is None
    assert worker["spec"]["restartPolicy"] == "Never"
    gpus = [container["resources"]["limits"]["nvidia.com/gpu"] for container in all_containers(worker)]
    assert gpus == [8, 8]


def test_the_sweep_stores_its_report_in_a_bucket(tmp_path):
    """Below the URL in its settings, as a ServiceAccount of its own."""
    pod = job("sweep.yaml")["template"]["spec"]
    assert pod["serviceAccountName"] == of_kind("sweep.yaml", "ServiceAccount")["metadata"]["name"]
    assert "--store" in of_muster(job("sweep.yaml")["template"])["args"]
    path = tmp_path / "muster.toml"
    path.write_text(of_kind("sweep.yaml", "ConfigMap")["data"]["muster.toml"])
    assert Config(load(path, {})).plugin("artifacts", ArtifactSettings).url == "gs://my-bucket/muster"


def test_ray_has_the_profile_of_the_machine():
    """Every variable of it, in the order of the profile."""
    (container,) = ray_templates()[1]["spec"]["containers"]
    ours = {each["name"]: each["value"] for each in container["env"] if each["name"].startswith("NCCL_")}
    assert ours == profiles()["gib-a3u"].environment


def test_messages_of_the_sweep_double():
    """From 1 KB to 16 GB, after a small one that shows whether all pods are connected."""
    suites = tomllib.loads(of_kind("sweep.yaml", "ConfigMap")["data"]["muster.toml"])["suites"]
    first, last = (step["params"] for step in suites["sweep"]["steps"])
    assert first == {"size_bytes": "1M"}
    assert (last["begin_bytes"], last["end_bytes"], last["factor"]) == ("1K", "16G", 2)
    assert last["iterations"] > 1


def test_pods_of_a_workload_never_share_a_node():
    """Neither two workers of Ray nor two pods of a Job."""
    for template in gpu_templates():
        (rule,) = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert rule["topologyKey"] == "kubernetes.io/hostname"
        assert rule["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_what_is_installed_enforces(installed):
    """With the agents of A3 Ultra, and tests before a node is accepted."""
    settings = load(None, installed["ConfigMap", "muster-coordinator-environment"]["data"])
    assert settings.quarantine.mode == "enforce"
    assert [test.check for test in settings.quarantine.tests] == ["gemm", "memory"]
