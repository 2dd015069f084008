"""The guide to Kubernetes: what it shows can be applied, and it tells of every right that is asked for."""

import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from muster.config import load

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "guides" / "kubernetes.md").read_text(encoding="utf-8")
YAML = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)]
FILES = re.findall(r"^\$ kubectl \w+ -[fk] (\S+?)\)?$", GUIDE.replace("<(", ""), re.MULTILINE)
RIGHT = re.compile(r"^\| (agent|coordinator)[^|]* \| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)
VARIABLE = re.compile(r"\b(MUSTER_\w+)=(\S+)")
COMPONENT = re.compile(r"^\| `([a-z-]+)` \|", re.MULTILINE)


@pytest.fixture
def overlay():
    """The overlay that the guide has an operator write."""
    return next(block for block in YAML if "images" in block)


def test_overlay_can_be_built(overlay, kustomize):
    """It names all images that there are, and its settings get to the pods."""
    made = kustomize(overlay)
    specs = [document.get("spec", {}) for document in made.values()]
    pods = [spec["template"]["spec"] for spec in specs if "template" in spec]
    images = {container["image"] for pod in pods for container in pod["containers"]}
    assert {image["newName"] + ":" + image["newTag"] for image in overlay["images"]} == images
    assert made["ConfigMap", "muster-environment"]["data"]["MUSTER_FLEET"] == "training"


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
    assert set(COMPONENT.findall(GUIDE)) == {path.name for path in (ROOT / "daemonset" / "components").iterdir()}
