"""The guides to Kubernetes and webhooks: what they show can be applied, and every right that is asked for is told."""

import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from muster.config import Config, load
from muster_plugins.notifiers.artifacts.settings import ArtifactSettings
from muster_plugins.notifiers.webhook.settings import NAME, WebhookSettings

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")
WEBHOOKS = (ROOT / "docs" / "how-to" / "webhooks.md").read_text(encoding="utf-8")
ARTIFACTS = (ROOT / "docs" / "how-to" / "artifacts.md").read_text(encoding="utf-8")


def blocks(guide: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)


YAML = [yaml.safe_load(block) for block in blocks(GUIDE, "yaml")]
DEPLOYMENT = ("Deployment", "muster-coordinator")
ENVIRONMENT = ("ConfigMap", "muster-coordinator-environment")
MINE = "daemonset/overlays/mine"
APPLIED = re.findall(r"^\$ kubectl apply -k (\S+)$", GUIDE, re.MULTILINE)
FILES = sorted({*re.findall(r"^\$ kubectl \w+ -[fk] (\S+?)\)?$", GUIDE.replace("<(", ""), re.MULTILINE)} - {MINE})
BASES = sorted({*re.findall(r"`(\.\./[a-z-]+)`", GUIDE)})
RIGHT = re.compile(r"^\| (agent|coordinator|signer)[^|]* \| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)
VARIABLE = re.compile(r"\b(MUSTER_\w+)=(\S+)")
COMPONENT = re.compile(r"^\| `([a-z0-9-]+)` \|", re.MULTILINE)


@pytest.fixture
def overlay():
    """The overlay that the guide has an operator write."""
    return next(block for block in YAML if "images" in block)


@pytest.mark.parametrize("base", BASES)
def test_overlay_can_be_built(overlay, base, kustomize):
    """On each base it names all images that there are, and its settings get to the pods."""
    made = kustomize({**overlay, "resources": [base]})
    specs = [document.get("spec", {}) for document in made.values()]
    pods = [spec["template"]["spec"] for spec in specs if "template" in spec]
    containers = [container for pod in pods for container in (*pod.get("initContainers", ()), *pod["containers"])]
    images = {container["image"] for container in containers}
    assert {image["newName"] + ":" + image["newTag"] for image in overlay["images"]} == images
    assert made["ConfigMap", "muster-environment"]["data"]["MUSTER_EXPECTED_GPUS"] == "8"


def test_another_fleet_gets_its_own_acl(tmp_path, kustomize):
    """The command writes the broker's ACL for the fleet in the settings, and the overlay mounts it."""
    (addition,) = (block for block in YAML if "MUSTER_FLEET=training" in str(block))
    settings, broker = addition["configMapGenerator"]
    (command,) = re.findall(r"^sed .*?[^\\]$", GUIDE, re.MULTILINE | re.DOTALL)
    target = tmp_path / MINE / broker["files"][0]
    target.parent.mkdir(parents=True)
    (tmp_path / "daemonset" / "components").symlink_to(ROOT / "daemonset" / "components")
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, timeout=60)
    rules = [line for line in target.read_text().splitlines() if line.startswith(("pattern", "topic"))]
    assert len(rules) == 9
    assert all(" muster/v1/training/" in rule for rule in rules)
    manifests = kustomize({"resources": ["../observe"], "configMapGenerator": [settings]})
    assert manifests["ConfigMap", "muster-environment"]["data"]["MUSTER_FLEET"] == "training"
    assert target.name in manifests["ConfigMap", broker["name"]]["data"]


def test_signer_can_run_where_all_nodes_have_gpus(kustomize):
    """With the patch of the guide, which changes nothing else."""
    (addition,) = (block for block in YAML if "muster-signer" in str(block))
    before, after = kustomize({"resources": ["../observe"]}), kustomize({"resources": ["../observe"], **addition})
    assert [key for key, document in after.items() if document != before[key]] == [("Deployment", "muster-signer")]
    assert "affinity" not in after["Deployment", "muster-signer"]["spec"]["template"]["spec"]


def test_only_the_operator_s_overlay_is_applied():
    """Ours would put their own images and settings in the place of the operator's."""
    assert set(APPLIED) == {MINE}


def test_settings_are_there():
    """Every variable that is set to something is a setting that can have this value."""
    load(None, dict(VARIABLE.findall(GUIDE)))


@pytest.mark.parametrize("variant", ["observe"], indirect=True)
def test_another_way_out_is_the_coordinator_s(manifests):
    """The policy that the guide shows is valid, and adds to those of the pods that the coordinator has."""
    (policy,) = (block for block in YAML if "kind" in block and block["kind"] == "NetworkPolicy")
    kubernetes_validate.validate(policy, "1.34", strict=True)
    others = manifests["NetworkPolicy", "muster-coordinator"]
    assert policy["metadata"]["namespace"] == others["metadata"]["namespace"]
    assert policy["spec"]["podSelector"] == others["spec"]["podSelector"]
    assert ("NetworkPolicy", policy["metadata"]["name"]) not in manifests


@pytest.mark.parametrize("path", FILES)
def test_files_are_there(path):
    """What kubectl is given is in the repository."""
    place = ROOT / path
    assert place.is_file() or (place / "kustomization.yaml").is_file()


@pytest.fixture
def with_webhooks(kustomize):
    """`enforce` with what the guide to webhooks adds to an overlay."""
    (addition,) = map(yaml.safe_load, blocks(WEBHOOKS, "yaml"))
    return kustomize({"resources": ["../enforce"], **addition})


@pytest.mark.parametrize("variant", ["enforce"], indirect=True)
def test_secrets_of_webhooks_are_the_coordinator_s_alone(manifests, with_webhooks):
    """Nothing else is changed by what the guide adds."""
    assert {key for key, document in with_webhooks.items() if document != manifests[key]} == {DEPLOYMENT, ENVIRONMENT}
    kubernetes_validate.validate(with_webhooks[DEPLOYMENT], "1.34", strict=True)


def test_secrets_of_webhooks_are_where_the_settings_look(with_webhooks):
    """The variable and the file are of keys that the Secret has."""
    (file,) = blocks(WEBHOOKS, "text")
    secret = dict(line.split("=", 1) for line in file.splitlines())
    (container,) = with_webhooks[DEPLOYMENT]["spec"]["template"]["spec"]["containers"]
    variables = {
        each["name"]: secret[each["valueFrom"]["secretKeyRef"]["key"]]
        for each in container["env"]
        if "valueFrom" in each
    }
    settings = Config(load(None, with_webhooks[ENVIRONMENT]["data"] | variables)).plugin(NAME, WebhookSettings)
    key_file = settings.targets["pager"].routing_key_file
    assert key_file is not None
    assert key_file.name in secret
    assert str(key_file.parent) in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert settings.targets["chat"].url.get_secret_value() == secret["slack-url"]


@pytest.mark.parametrize("variant", ["enforce"], indirect=True)
def test_the_coordinator_reaches_the_metadata_server_for_a_bucket(manifests):
    """By a policy for its own pods, at both addresses that GKE has for the server; the setting is one of the plugin."""
    settings, policy = map(yaml.safe_load, blocks(ARTIFACTS, "yaml"))
    kubernetes_validate.validate(policy, "1.34", strict=True)
    pod = manifests[DEPLOYMENT]["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod.items()
    reached = {(rule["to"][0]["ipBlock"]["cidr"], rule["ports"][0]["port"]) for rule in policy["spec"]["egress"]}
    assert reached == {("169.254.169.254/32", 80), ("169.254.169.252/32", 988)}
    variables = dict(literal.split("=", 1) for literal in settings["literals"])
    assert Config(load(None, variables)).plugin("artifacts", ArtifactSettings).url == "gs://my-bucket/muster"


@pytest.mark.parametrize("variant", ["everything"], indirect=True)
def test_table_of_rights_is_complete(manifests):
    """And has none that nobody asks for."""
    told = {
        (f"muster-{who}", resource, verb) for who, resource, verbs in RIGHT.findall(GUIDE) for verb in verbs.split(", ")
    }
    asked = {
        (binding["subjects"][0]["name"], resource, verb)
        for (kind, _), binding in manifests.items()
        if kind.endswith("RoleBinding")
        for rule in manifests[binding["roleRef"]["kind"], binding["roleRef"]["name"]]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert told == asked


def test_every_component_is_told_of():
    """In the order in which they are listed, those that there are."""
    table, _, _ = GUIDE.partition("### Helm")
    assert set(COMPONENT.findall(table)) == {path.name for path in (ROOT / "daemonset" / "components").iterdir()}
