"""The manifests as a whole: Kubernetes would take them, and muster would take the settings in them."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from typer.main import get_command

from muster import cli, plugins
from muster.config import Config, load

ROOT = Path(__file__).parent.parent.parent
SECRETS = {
    "muster-authority", "muster-broker-tls", "muster-ca", "muster-coordinator-tls", "muster-signer-tls", "muster-token",
}  # fmt: skip
"""Those that daemonset/secrets prints."""

OTHER_SECRETS = {"muster-agent-token", "muster-read-token"}
"""Those that the guides have an operator create."""

FIELDS = {"spec.nodeName": "gpu1", "status.hostIP": "10.0.0.1", "metadata.uid": "0f7c", "status.podIP": "10.1.0.1"}


def only_container(pod):
    (container,) = pod["containers"]
    return container


def environment(container, manifests):
    """The variables of a container as Kubernetes sets them."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        found |= manifests["ConfigMap", source["configMapRef"]["name"]]["data"]
    for variable in container.get("env", ()):
        value = variable.get("value") or FIELDS[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        found[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], value)
    return found


@pytest.fixture(params=["muster-agent", "muster-coordinator"])
def container(request, pods):
    return only_container(pods[request.param])


@pytest.fixture
def settings_file(manifests, tmp_path):
    path = tmp_path / "muster.toml"
    path.write_text(manifests["ConfigMap", "muster-settings"]["data"]["muster.toml"])
    return path


@cache
def problem(document: str) -> str | None:
    """What Kubernetes would say against a document, given as JSON, unless it is a custom resource.

    Most documents are in every variant.
    """
    try:
        kubernetes_validate.validate(json.loads(document), kubernetes_validate.latest_version(), strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{error.json_path}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError:
        return None
    return None


def test_kubernetes_knows_every_field(manifests):
    """Nor is any of a wrong type."""
    found = {name: problem(json.dumps(document)) for name, document in manifests.items()}
    assert {name: what for name, what in found.items() if what is not None} == {}


def test_a_field_that_kubernetes_does_not_know_is_found():
    """Otherwise the test above would show nothing."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any"}, "dta": {}}
    assert "'dta'" in str(problem(json.dumps(document)))


def test_every_name_leads_somewhere(manifests, pods):
    """What pods mount and are started with is among the manifests, or is a Secret that an operator creates."""
    for pod in pods.values():
        assert ("ServiceAccount", pod.get("serviceAccountName", "muster-agent")) in manifests
        assert ("PriorityClass", pod["priorityClassName"]) in manifests
        containers = (*pod.get("initContainers", ()), *pod["containers"])
        mounted = {mount["name"] for container in containers for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        for volume in pod["volumes"]:
            assert volume.get("secret", {"secretName": "muster-token"})["secretName"] in SECRETS | OTHER_SECRETS
            assert ("ConfigMap", volume.get("configMap", {"name": "muster-settings"})["name"]) in manifests
            claim = volume.get("persistentVolumeClaim", {"claimName": "muster-coordinator"})
            assert ("PersistentVolumeClaim", claim["claimName"]) in manifests


def test_all_is_in_one_namespace(manifests):
    """And what is in none, or in another, has a name that says whose it is."""
    elsewhere = [name for (_, name), document in manifests.items() if document["metadata"].get("namespace") != "muster"]
    assert [name for name in elsewhere if not name.startswith("muster")] == []


def test_images_are_pinned(pods):
    """By a version, which `latest` is not."""
    for pod in pods.values():
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            _, _, tag = container["image"].rpartition(":")
            assert tag[:1].isdigit()


def test_no_stray_variable_stops_muster(pods):
    """Kubernetes would set MUSTER_BROKER_PORT and the like for Services, and muster refuses what it does not know."""
    assert all(pod["enableServiceLinks"] is False for pod in pods.values())


def test_settings_are_right(container, manifests, settings_file):
    """File and environment together are accepted, by the plugins as well, and none of it is for nobody."""
    config = Config(load(settings_file, environment(container, manifests)))
    found = plugins.load(config)
    assert found.failed == ()
    assert config.unclaimed() == []


def test_arguments_are_right(container, pods):
    """The command is there and takes its options; the settings are where they are mounted."""
    command: Any = get_command(cli.app)
    name, *options = container["args"]
    command.get_command(None, name).make_context("muster", list(options))
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert options == ["--config=/etc/muster/settings/muster.toml"]
    assert {"/etc/muster/settings", "/etc/muster/tls", "/var/lib/muster", "/tmp"} <= mounts


@pytest.mark.parametrize("variant", ["observe"], indirect=True)
def test_config_check_has_nothing_to_say(container, manifests, settings_file, muster, tmp_path):
    """With the certificates and the token where the settings say that they are."""
    for mounted in ("tls/ca.crt", "tls/tls.crt", "tls/tls.key", "token/token"):
        path = tmp_path / mounted
        path.parent.mkdir(exist_ok=True)
        path.touch()
    here = settings_file.read_text().replace("/etc/muster", str(tmp_path))
    settings_file.write_text(here)
    variables = {
        name: value.replace("/etc/muster", str(tmp_path))
        for name, value in environment(container, manifests).items()
        if name.startswith("MUSTER_")
    }
    done = muster("config", "check", "--config", str(settings_file), env=variables)
    assert (done.returncode, done.stdout) == (0, "OK\n"), done.stderr


@pytest.mark.parametrize("name", ["muster-coordinator", "muster-broker", "muster-signer"])
def test_what_needs_no_node_is_restricted(pods, name):
    """It would be allowed in a namespace with the Pod Security Standard `restricted`, and writes to volumes only."""
    pod, container = pods[name], only_container(pods[name])
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not any("hostPath" in volume for volume in pod["volumes"])


def test_script_is_clean():
    """Shellcheck has nothing to say."""
    script = ROOT / "daemonset" / "secrets"
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
