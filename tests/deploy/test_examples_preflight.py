"""The examples of a preflight before a JobSet trains and before Ray starts. Slurm's own tests have that for Slurm."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.free_ports import free_port
from tests.deploy.custom_resources import problems
from tests.deploy.test_examples import environment, understood

from muster import plugins
from muster.config import Config, load
from muster_agent.acceptance.exchange import Gang
from muster_agent.acceptance.job import AcceptanceJob, detect
from muster_agent.acceptance.suites import AcceptanceRequest, plan_of
from muster_agent.commands.preflight_run import GangFiles

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RAY_START = EXAMPLES / "ray" / "ray-start"
OBJECTS = list(yaml.safe_load_all((EXAMPLES / "kubernetes" / "preflight-jobset.yaml").read_text(encoding="utf-8")))
SETTINGS, JOB_SET = OBJECTS


@pytest.fixture
def job() -> Any:
    (replicated,) = JOB_SET["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]


@pytest.fixture
def preflight(job) -> Any:
    (container,) = job["template"]["spec"]["initContainers"]
    return container


@pytest.fixture
def train(job) -> Any:
    (container,) = job["template"]["spec"]["containers"]
    return container


def given(container: Any) -> dict[str, str]:
    """The options of a container by name."""
    return dict(argument.lstrip("-").partition("=")[::2] for argument in container["args"])


def test_api_servers_would_take_it():
    """Every field is known to Kubernetes or to muster's table of custom resources."""
    assert [problem for item in OBJECTS for problem in problems(item)] == []


def test_each_pod_finds_the_others(job, preflight):
    """As many as there are pods, one of which is a spare; the first by its name in DNS, before it is ready."""
    assert job["completionMode"] == "Indexed"
    assert job["completions"] == job["parallelism"] == 3
    assert JOB_SET["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    for index in range(3):
        expected = AcceptanceJob(
            rank=index, size=3, local_rank=0, local_size=1, address="train-node-0-0.train", port=29400
        )
        assert detect(environment(preflight, index)) == expected
    assert given(preflight)["need"] == "2"


def test_the_preflight_is_a_command_and_a_suite_that_exist(preflight, tmp_path):
    """With the settings that are mounted, and as its first lines say for a coordinator."""
    (tmp_path / "muster.toml").write_text(SETTINGS["data"]["muster.toml"])
    settings = load(tmp_path / "muster.toml", {})
    found = plugins.load(Config(settings))
    asked = AcceptanceRequest(names=(), every=False, suite=given(preflight)["suite"], quick=False, params={})
    assert plan_of(asked, settings, plugins.collect_checks(found), found.failed).has_groups
    understood([*preflight["args"], "--send", "--url=http://c:1", "--token-file=/etc/muster-token/report-token"])
    load(None, environment(preflight, 0))


def test_both_containers_use_the_same_files_and_gpus(job, preflight, train):
    """The place of the node is handed over in a volume that both mount."""
    mounts = {each["name"]: each["mountPath"] for each in train["volumeMounts"]}
    assert mounts.items() <= {each["name"]: each["mountPath"] for each in preflight["volumeMounts"]}.items()
    assert given(preflight)["env-file"] == f"{mounts['gang']}/env"
    gpus = [each["resources"]["limits"]["nvidia.com/gpu"] for each in (preflight, train)]
    assert gpus == [int(given(preflight)["expect-gpus"])] * 2
    assert {each["name"] for each in job["template"]["spec"]["volumes"]} == {
        each["name"] for each in preflight["volumeMounts"]
    }


def test_training_starts_in_its_place_or_not_at_all(train, tmp_path):
    """With what a preflight has written; without it, the pod of a spare ends well."""
    (tmp_path / "torchrun").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "torchrun").chmod(0o755)
    *shell, script = train["command"]
    command = [*shell, script.replace("/gang/", f"{tmp_path}/")]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout == ""
    GangFiles(tmp_path / "env", None).write_place("b", Gang(nodes=("a", "b"), address="fd00::7"))
    told = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    expected = "--nnodes 2 --node-rank 1 --nproc-per-node 8 --master-addr fd00::7 --master-port 29500 train.py\n"
    assert told == expected


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
