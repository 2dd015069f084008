"""How an agent's pod gets its certificate: the programs find their files, and no node gets another one's key."""

import inspect
from typing import Any

import pytest
from typer.main import get_command

from muster import cli
from muster_plugins.schedulers.kubernetes import commands
from muster_plugins.schedulers.kubernetes.enrolment.applicant import ACCOUNT, AUDIENCE


@pytest.fixture
def agent(pods):
    return pods["muster-agent"]


@pytest.fixture
def enrol(agent):
    (container,) = agent["initContainers"]
    return container


@pytest.fixture
def sign(pods):
    (container,) = pods["muster-signer"]["containers"]
    return container


def mounts(container):
    """By path, the name of the volume, and whether the container may write to it."""
    return {
        mount["mountPath"]: (mount["name"], not mount.get("readOnly", False)) for mount in container["volumeMounts"]
    }


def volume(pod, name):
    return next(volume for volume in pod["volumes"] if volume["name"] == name)


def defaults(command):
    return {name: parameter.default for name, parameter in inspect.signature(command).parameters.items()}


def test_commands_are_there(enrol, sign):
    """Without options: their defaults are the paths in the manifests."""
    for container, name in ((enrol, "enrol"), (sign, "sign")):
        group, command = container["args"]
        assert (group, command) == ("kubernetes", name)
        found: Any = get_command(cli.app)
        assert name in found.get_command(None, group).commands


def test_agent_finds_what_enrol_writes(agent, enrol):
    """In memory, where both can read and only `enrol` can write; the agent starts after the first certificate."""
    (container,) = agent["containers"]
    directory = str(defaults(commands.enrol)["tls"])
    assert mounts(container)[directory] == ("tls", False)
    assert mounts(enrol)[directory] == ("tls", True)
    assert volume(agent, "tls")["emptyDir"]["medium"] == "Memory"
    assert enrol["restartPolicy"] == "Always"
    assert enrol["startupProbe"]["exec"]["command"] == ["test", "-s", f"{directory}/tls.crt"]


def test_enrol_finds_its_token_and_the_signer(manifests, agent, enrol):
    """The token is for the signer alone and of the account that it accepts; the agent's container does not have it."""
    expected = defaults(commands.enrol)
    (source,) = volume(agent, "signer-token")["projected"]["sources"]
    token = source["serviceAccountToken"]
    assert token["audience"] == AUDIENCE
    assert mounts(enrol)[str(expected["token"].parent)] == ("signer-token", False)
    assert expected["token"].name == token["path"]
    assert f"system:serviceaccount:muster:{agent['serviceAccountName']}" == ACCOUNT
    assert "signer-token" not in {name for name, _ in mounts(agent["containers"][0]).values()}
    (port,) = manifests["Service", "muster-signer"]["spec"]["ports"]
    assert expected["signer"] == f"https://muster-signer.muster.svc:{port['port']}"
    assert mounts(enrol)[str(expected["authority"].parent)] == ("authority", False)


def test_enrol_has_no_privileges(enrol):
    """Also in overlays in which the agent's container has some."""
    assert enrol["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_signer_finds_its_files(pods, sign):
    """The authority's key and its own certificate come from Secrets."""
    expected = defaults(commands.sign)
    assert mounts(sign)[str(expected["authority"])] == ("authority", False)
    assert mounts(sign)[str(expected["tls"])] == ("tls", False)
    assert volume(pods["muster-signer"], "authority")["secret"]["secretName"] == "muster-authority"
    assert volume(pods["muster-signer"], "tls")["secret"]["secretName"] == "muster-signer-tls"
    assert sign["ports"] == [{"name": "https", "containerPort": int(expected["listen"].rpartition(":")[2])}]


def test_no_node_with_gpus_has_a_key_that_is_not_its_own(pods):
    """A kubelet may read every Secret of a pod on its node."""
    secrets = {
        name: {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
        for name, pod in pods.items()
    }
    for_scrapes = {"muster-agent-token"}  # all agents have this one, which lets read their metrics and nothing else
    assert secrets["muster-agent"] - for_scrapes == {"muster-ca"}
    assert [name for name, found in secrets.items() if "muster-authority" in found] == ["muster-signer"]
    needed = pods["muster-signer"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = needed["nodeSelectorTerms"]
    wanted = pods["muster-agent"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = {rule["key"] for other in wanted["nodeSelectorTerms"] for rule in other["matchExpressions"]}
    rules = {(rule["key"], rule["operator"]) for rule in term["matchExpressions"]}
    assert rules == {(key, "DoesNotExist") for key in keys}
