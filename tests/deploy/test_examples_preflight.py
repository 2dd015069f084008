"""The examples of a preflight before a job trains and before Ray starts. Slurm's own tests have that for Slurm."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.free_ports import free_port
from tests.deploy.test_examples import environment, understood

from muster import plugins
from muster.config import Config, load
from muster_agent.acceptance.exchange import Gang
from muster_agent.acceptance.job import AcceptanceJob, detect
from muster_agent.acceptance.suites import AcceptanceRequest, plan_of
from muster_agent.commands.preflight_run import GangFiles

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RAY_START = EXAMPLES / "ray" / "ray-start"
JOB_SETS = ("kubernetes/preflight-jobset.yaml", "gke/train.yaml")
PYTORCH_JOB = "kubernetes/preflight-pytorchjob.yaml"


def objects(file: str) -> dict[str, Any]:
    """The objects of an example by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((EXAMPLES / file).read_text(encoding="utf-8"))}


def containers(pod: Any) -> tuple[Any, Any]:
    """The container that runs the preflight, and the one that trains."""
    (preflight,), (train,) = pod["initContainers"], pod["containers"]
    return preflight, train


def assert_handed_over(pod: Any, expected_gpus: int) -> None:
    """Both containers have the same GPUs, and no volume is missing or useless."""
    preflight, train = containers(pod)
    gpus = [each["resources"]["limits"]["nvidia.com/gpu"] for each in (preflight, train)]
    assert gpus == [expected_gpus] * 2
    mounted = {each["name"] for container in (preflight, train) for each in container["volumeMounts"]}
    assert {each["name"] for each in pod["volumes"]} == mounted


def assert_has_groups(settings: str, suite: str, path: Path) -> None:
    """The settings that are mounted have the suite, whose checks exist."""
    path.write_text(settings)
    loaded = load(path, {})
    found = plugins.load(Config(loaded))
    asked = AcceptanceRequest(names=(), every=False, suite=suite, quick=False, params={})
    assert plan_of(asked, loaded, plugins.collect_checks(found), found.failed).has_groups


@pytest.fixture(params=JOB_SETS)
def job_set(request) -> dict[str, Any]:
    """Each JobSet that runs a preflight, with its settings."""
    return objects(request.param)


@pytest.fixture
def job(job_set) -> Any:
    (replicated,) = job_set["JobSet"]["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]


@pytest.fixture
def preflight(job) -> Any:
    return containers(job["template"]["spec"])[0]


@pytest.fixture
def train(job) -> Any:
    return containers(job["template"]["spec"])[1]


def given(container: Any) -> dict[str, str]:
    """The options of a container by name."""
    return dict(argument.lstrip("-").partition("=")[::2] for argument in container["args"])


def test_each_pod_finds_the_others(job_set, job, preflight):
    """As many as there are pods, one of which is a spare; the first by its name in DNS, before it is ready."""
    assert job["completionMode"] == "Indexed"
    assert job["completions"] == job["parallelism"] == 3
    assert job_set["JobSet"]["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    for index in range(3):
        expected = AcceptanceJob(
            rank=index, size=3, local_rank=0, local_size=1, address="train-node-0-0.train", port=29400
        )
        assert detect(environment(preflight, index)) == expected
    assert given(preflight)["need"] == "2"


def test_the_preflight_is_a_command_and_a_suite_that_exist(job_set, preflight, tmp_path):
    """With the settings that are mounted, and as its first lines say for a coordinator."""
    assert_has_groups(job_set["ConfigMap"]["data"]["muster.toml"], given(preflight)["suite"], tmp_path / "muster.toml")
    understood([*preflight["args"], "--send", "--url=http://c:1", "--token-file=/etc/muster-token/report-token"])
    load(None, environment(preflight, 0))


def test_both_containers_use_the_same_files_and_gpus(job, preflight, train):
    """The place of the node is handed over in a volume that both mount."""
    mounts = {each["name"]: each["mountPath"] for each in train["volumeMounts"]}
    assert mounts.items() <= {each["name"]: each["mountPath"] for each in preflight["volumeMounts"]}.items()
    assert given(preflight)["env-file"] == f"{mounts['gang']}/env"
    assert_handed_over(job["template"]["spec"], int(given(preflight)["expect-gpus"]))


def test_training_starts_in_its_place_or_not_at_all(train, tmp_path):
    """With what a preflight has written; without it, the pod of a spare ends well."""
    (tmp_path / "torchrun").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "torchrun").chmod(0o755)
    (tmp_path / "set_nccl_env.sh").touch()
    *shell, script = train["command"]
    command = [*shell, re.sub(r"/gang/|/usr/local/gib/scripts/", f"{tmp_path}/", script)]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout == ""
    GangFiles(tmp_path / "env", None).write_place("b", Gang(nodes=("a", "b"), address="fd00::7"))
    told = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    expected = "--nnodes 2 --node-rank 1 --nproc-per-node 8 --master-addr fd00::7 --master-port 29500 train.py\n"
    assert told == expected


@pytest.fixture
def pytorch_job() -> dict[str, Any]:
    """The PyTorchJob with its settings and its Service."""
    return objects(PYTORCH_JOB)


@pytest.fixture
def pytorch_pod(pytorch_job) -> Any:
    """The pod of the master, which is that of the worker as well."""
    roles = pytorch_job["PyTorchJob"]["spec"]["pytorchReplicaSpecs"]
    assert roles["Master"] == roles["Worker"] | {"replicas": 1}
    return roles["Master"]["template"]["spec"]


@pytest.mark.parametrize(("role", "index", "rank"), [("master", 0, 0), ("worker", 0, 1)])
def test_pods_of_a_pytorchjob_have_ranks_before_the_operator_gives_them(pytorch_pod, tmp_path, role, index, rank):
    """The same as those that it gives, from the labels of the pod; the command is one that muster knows."""
    preflight, _train = containers(pytorch_pod)
    labels = {"replica-type": role, "replica-index": str(index)}
    fields = {f"metadata.labels['training.kubeflow.org/{name}']": value for name, value in labels.items()}
    variables = environment(preflight, 0, fields)
    (tmp_path / "muster").write_text('#!/bin/sh\necho "$RANK" "$@"\n')
    (tmp_path / "muster").chmod(0o755)
    env = variables | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    told = subprocess.run(preflight["command"], env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    given_rank, *arguments = told.split()
    understood(arguments)
    expected = AcceptanceJob(rank=rank, size=2, local_rank=0, local_size=1, address="train-preflight", port=29400)
    assert detect(variables | {"RANK": given_rank}) == expected


def test_a_preflight_of_a_pytorchjob_finds_the_master(pytorch_job, pytorch_pod, tmp_path):
    """By a Service that knows it before it is ready, for as many nodes as there are; with a suite that exists."""
    preflight, _train = containers(pytorch_pod)
    service = pytorch_job["Service"]
    assert service["metadata"]["name"] == next(
        each["value"] for each in preflight["env"] if each["name"] == "MASTER_ADDR"
    )
    assert service["spec"]["publishNotReadyAddresses"]
    assert service["spec"]["selector"] == {
        "training.kubeflow.org/job-name": pytorch_job["PyTorchJob"]["metadata"]["name"],
        "training.kubeflow.org/replica-type": "master",
    }
    roles = pytorch_job["PyTorchJob"]["spec"]["pytorchReplicaSpecs"].values()
    assert {"name": "WORLD_SIZE", "value": str(sum(role["replicas"] for role in roles))} in preflight["env"]
    assert_has_groups(pytorch_job["ConfigMap"]["data"]["muster.toml"], "pod", tmp_path / "muster.toml")
    assert_handed_over(pytorch_pod, 8)


@pytest.fixture
def node(live, tmp_path):
    """Starts the script for Ray on a node: `node(rank, size, need, fault)`, with a `ray` that prints its arguments."""
    port, started = free_port(), []
    for name, content in {
        "muster": f'exec {sys.executable} -m muster "$@" --config {tmp_path}/muster.toml --suite short',
        "ray": 'echo "ray $@"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{content}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "muster.toml").write_text(
        "[plugins.simulated]\nenabled = true\ndevices = 1\n"
        '[suites.short]\nsteps = [{ section = "ENV", check = "simulated" }]\n'
    )

    def start(rank: int, size: int, need: int, fault: str = "") -> "subprocess.Popen[str]":
        job = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        faults = f'[{{"kind": "{fault}"}}]' if fault else "[]"
        env = os.environ | job | {"MUSTER_NODE": f"n{rank}", "MUSTER_PLUGINS__SIMULATED__FAULTS": faults}
        env |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        started.append(subprocess.Popen([RAY_START, str(need)], env=env, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_ray_starts_on_the_nodes_that_passed(node):
    """The first of them is the head, whatever its rank in the job; on the failed node and the spare nothing starts."""
    nodes = [node(0, 4, 2, fault="ecc"), *(node(rank, 4, 2) for rank in (1, 2, 3))]
    ended = [(process.communicate(timeout=120)[0], process.returncode) for process in nodes]
    started = [[line for line in out.splitlines() if line.startswith("ray ")] for out, _ in ended]
    assert [code for _, code in ended] == [2, 0, 0, 4]
    assert started == [
        [],
        ["ray start --head --node-ip-address=127.0.0.1 --port=6379 --block"],
        ["ray start --address=127.0.0.1:6379 --block"],
        [],
    ]


def test_the_script_for_ray_is_clean():
    """Shellcheck has nothing to say."""
    done = subprocess.run(["shellcheck", RAY_START], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
