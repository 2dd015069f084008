"""What docs/examples holds: shellcheck has nothing to say, and Kubernetes would take the manifests as they stand.

tests/plugins/schedulers/slurm/ runs the scripts under a real Slurm.
"""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.custom_resources import problems
from typer.main import get_command

from muster import cli, plugins
from muster.config import Config, load
from muster_agent.acceptance.job import AcceptanceJob, detect
from muster_agent.acceptance.suites import AcceptanceRequest, plan_of
from muster_plugins.schedulers.kubernetes import conditions, reservation
from muster_plugins.schedulers.kubernetes.settings import KubernetesActorSettings

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
SCRIPTS = sorted((EXAMPLES / "slurm").iterdir())
MANIFESTS = sorted((EXAMPLES / "kubernetes").iterdir())
MANIFEST = EXAMPLES / "kubernetes" / "acceptance-job.yaml"
ONE_GPU = EXAMPLES / "kubernetes" / "acceptance-one-gpu.yaml"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts(script):
    """Shellcheck has nothing to say."""
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def manifests():
    return {document["kind"]: document for document in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))}


@pytest.fixture
def pod(manifests):
    return manifests["Job"]["spec"]["template"]["spec"]


@pytest.fixture
def container(pod):
    (only,) = pod["containers"]
    return only


@pytest.fixture
def suite(manifests, tmp_path):
    """The settings and the plan of the suite that the Job names."""
    path = tmp_path / "muster.toml"
    path.write_text(manifests["ConfigMap"]["data"]["muster.toml"])
    settings = load(path, {})
    found = plugins.load(Config(settings))
    asked = AcceptanceRequest(names=(), every=False, suite="pod", quick=False, params={})
    return plan_of(asked, settings, plugins.collect_checks(found), found.failed)


def environment(container, index, others=None):
    """The variables of the pod with this index, as Kubernetes sets them; `others` are further fields of the pod."""
    fields = {"metadata.annotations['batch.kubernetes.io/job-completion-index']": str(index), "spec.nodeName": "gpu1"}
    fields |= others or {}
    return {
        variable["name"]: variable.get("value") or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container["env"]
    }


def understood(arguments):
    """Fails if the command line does not know an argument."""
    command: Any = get_command(cli.app)
    options = list(arguments)
    while hasattr(command, "get_command"):
        command = command.get_command(None, options.pop(0))
    command.make_context("muster", options)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_api_servers_would_take_it(manifest):
    """Every field is known to Kubernetes or to muster's table of custom resources, and has a value that is allowed."""
    objects = yaml.safe_load_all(manifest.read_text(encoding="utf-8"))
    assert [problem for each in objects for problem in problems(each)] == []


@pytest.mark.parametrize("index", [0, 1])
def test_each_pod_finds_the_others(manifests, pod, container, index):
    """By the name that the headless Service gives to the first one: as many as there are pods."""
    job, service = manifests["Job"], manifests["Service"]
    first = f"{job['metadata']['name']}-0.{pod['subdomain']}"
    port = int(environment(container, index)["MASTER_PORT"])
    expected = AcceptanceJob(rank=index, size=2, local_rank=0, local_size=1, address=first, port=port)
    assert detect(environment(container, index)) == expected
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == expected.size
    assert service["spec"]["clusterIP"] == "None"
    assert service["metadata"]["name"] == pod["subdomain"]
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": job["metadata"]["name"]}


def test_the_pod_runs_a_command_and_a_suite_that_exist(container, suite):
    """With the settings that are mounted, and for as many GPUs as the pod asks for."""
    arguments = dict(argument.lstrip("-").partition("=")[::2] for argument in container["args"])
    assert arguments["suite"] == suite.suite
    assert arguments["expect-gpus"] == str(container["resources"]["limits"]["nvidia.com/gpu"])
    understood(container["args"])
    load(None, environment(container, 0))


def test_what_is_mounted_is_there_and_writable(pod, container):
    """The root file system is read-only, so what is written needs a volume."""
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(mounted.values()) == {volume["name"] for volume in pod["volumes"]}
    assert {"/etc/muster", "/etc/muster-token", "/dev/shm", "/tmp", "/reports"} == set(mounted)
    assert environment(container, 0)["MUSTER_DATA_DIR"] == "/tmp"


def test_a_report_is_sent_as_the_first_lines_say(container):
    """With these arguments, and the token of a Secret that need not be there otherwise."""
    head = MANIFEST.read_text(encoding="utf-8").partition("apiVersion")[0]
    sending = re.findall(r"^#   - (--\S+)$", head, re.MULTILINE)
    assert [name.partition("=")[0] for name in sending] == ["--send", "--url", "--token-file"]
    assert sending[2].partition("=")[2].startswith("/etc/muster-token/")
    understood([*container["args"], *sending])


def test_the_pod_is_restricted(pod, container):
    """It is allowed in a namespace with the Pod Security Standard `restricted`, and gets no stray variables."""
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod.get("hostNetwork")
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]


def test_the_job_for_one_gpu_is_restricted_and_ends():
    """It runs a suite that exists on as many GPUs as it asks for, as the larger Job does."""
    job = yaml.safe_load(ONE_GPU.read_text(encoding="utf-8"))["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    test_the_pod_is_restricted(pod, container)
    test_nothing_waits_or_stays_for_ever({"Job": {"spec": job}}, pod)
    understood(container["args"])
    assert "--expect-gpus=1" in container["args"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_nothing_waits_or_stays_for_ever(manifests, pod):
    """Pods are not started again, and all has an end."""
    job = manifests["Job"]["spec"]
    assert (job["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert job["ttlSecondsAfterFinished"] > 0
    assert job["activeDeadlineSeconds"] > 0


@pytest.fixture
def pytorch_job():
    """The same acceptance as a PyTorchJob: its settings, and the job."""
    text = (EXAMPLES / "kubernetes" / "acceptance-pytorchjob.yaml").read_text(encoding="utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def test_a_pytorchjob_has_the_settings_and_the_pods_of_the_job(pytorch_job, manifests, pod, container):
    """Kubeflow's operator sets the variables of the job, and looks for a container by name."""
    assert pytorch_job["ConfigMap"] == manifests["ConfigMap"]
    theirs = pytorch_job["PyTorchJob"]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    (only,) = theirs["containers"]
    assert only["name"] == "pytorch"
    assert only == container | {"name": "pytorch", "env": only["env"]}
    assert theirs == {key: value for key, value in pod.items() if key != "subdomain"} | {"containers": [only]}


def test_the_pods_of_a_pytorchjob_find_each_other(pytorch_job):
    """By what the operator sets: one process for each pod, the master's rank is 0."""
    spec = pytorch_job["PyTorchJob"]["spec"]
    roles = spec["pytorchReplicaSpecs"]
    assert roles["Master"]["template"] == roles["Worker"]["template"]
    assert "nprocPerNode" not in spec
    size = sum(role["replicas"] for role in roles.values())
    operator = {"RANK": "1", "WORLD_SIZE": str(size), "MASTER_ADDR": "acceptance-master-0", "MASTER_PORT": "23456"}
    expected = AcceptanceJob(rank=1, size=2, local_rank=0, local_size=1, address="acceptance-master-0", port=23456)
    assert detect(operator | {"PET_NNODES": "2", "PET_NODE_RANK": "1"}) == expected


def test_a_pytorchjob_neither_waits_nor_stays_for_ever(pytorch_job):
    """As the Job."""
    policy = pytorch_job["PyTorchJob"]["spec"]["runPolicy"]
    assert policy["backoffLimit"] == 0
    assert policy["ttlSecondsAfterFinished"] > 0
    assert policy["activeDeadlineSeconds"] > 0
    assert {role["restartPolicy"] for role in pytorch_job["PyTorchJob"]["spec"]["pytorchReplicaSpecs"].values()} == {
        "Never"
    }


@pytest.fixture
def rule():
    """What the Node Readiness Controller is to do."""
    return yaml.safe_load((EXAMPLES / "kubernetes" / "node-readiness-rule.yaml").read_text(encoding="utf-8"))


def test_the_readiness_rule_waits_for_muster(rule):
    """For the condition that muster writes, and once only: later faults are for the quarantine."""
    assert rule["spec"]["conditions"] == [{"type": conditions.TYPE, "requiredStatus": "True"}]
    assert rule["spec"]["enforcementMode"] == "bootstrap-only"


def test_no_taint_has_two_owners(rule):
    """The controller's is none of muster's."""
    actor = KubernetesActorSettings()
    assert actor.quarantine_taint is not None
    ours = {actor.startup_taint, actor.quarantine_taint.key, reservation.KEY}
    assert rule["spec"]["taint"]["key"] not in ours
    assert rule["spec"]["taint"]["key"].startswith("readiness.k8s.io/")
