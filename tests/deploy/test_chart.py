"""The Helm chart: rendered with Helm itself, it is what kustomize makes of the same choices."""

import itertools
import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from generator.chart import DAEMONSET, IMAGES, MODES, components, value_of
from generator.kustomize import Documents, Json, documents_in
from tests.cases import cases
from tests.deploy.test_dependencies import PROJECT
from tests.deploy.test_manifests_guide import GUIDE, YAML

CHART = DAEMONSET / "chart"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
OPTIONAL = [name for name in components() if name != "broker"]
SINGLE = [(name,) for name in OPTIONAL]
PAIRS = [pair for pair in itertools.combinations(OPTIONAL, 2) if pair != ("gke-a3u", "gke-a4")]
SETS = [(), *SINGLE, *PAIRS, tuple(name for name in OPTIONAL if name != "gke-a3u")]
"""The components that are chosen together. No value depends on more than two, but all of them are tried as well."""

CHOICES = {
    f"{mode} {' '.join(chosen)}": (mode, chosen)
    for mode in ("observe", *MODES)
    for chosen in (SETS if mode == "observe" else [(), SETS[-1]])
}

WRONG: list[tuple[Json, str]] = [
    ({"mode": "drain"}, "mode"),
    ({"components": {"kernel-log": True}}, "kernel-log"),
    ({"components": {"gkeA4": True, "gkeA3u": True}}, "components"),
    ({"environment": {"MUSTER_EXPECTED_GPUS": 8}}, "MUSTER_EXPECTED_GPUS"),
    ({"environment": {"MUSTER_FLEET": "training"}}, "MUSTER_FLEET"),
    ({"images": {"agent": "muster-agent"}}, "agent"),
    ({"namespace": "elsewhere"}, "--namespace muster"),
]
"""Values, and what the error names."""

pytestmark = pytest.mark.skipif(platform.machine() == "aarch64", reason="Helm's library has no wheel for this machine")


def helm(**asked: Any) -> Any:
    """What helm_render prints."""
    program = [sys.executable, str(Path(__file__).with_name("helm_render.py"))]
    request = json.dumps({"chart": str(CHART), **asked})
    done = subprocess.run(program, input=request, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def values_of(mode: str, chosen: tuple[str, ...]) -> Json:
    return {"mode": mode, "components": {value_of(name): True for name in chosen}}


@pytest.fixture(scope="module")
def rendered():
    """What Helm makes of each choice."""
    return helm(values={name: values_of(*choice) for name, choice in CHOICES.items()})


def documents(answer: Json) -> Documents:
    """The documents of a rendered chart, without the checksums, for which kustomize has names."""
    assert "error" not in answer, answer["error"]
    texts = [text for path, text in answer["templates"].items() if path.endswith(".yaml")]
    found = [document for text in texts for document in documents_in(text) if document]
    for document in found:
        annotations = document.get("spec", {}).get("template", {}).get("metadata", {}).pop("annotations", {})
        assert len(annotations.get("checksum/configuration", "0" * 64)) == 64
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


def comparable(made: Documents) -> Documents:
    """The documents of kustomize that a chart has, with the data of ConfigMaps that have none."""
    return {
        key: document | ({"data": document["data"] or None} if key[0] == "ConfigMap" else {})
        for key, document in made.items()
        if key[0] != "Namespace"
    }


def unordered(value: Any) -> Any:
    """Without the order of named items and of capabilities, which follows from the order of components."""
    if isinstance(value, dict):
        return {key: sorted({*each}) if key == "add" else unordered(each) for key, each in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return sorted(map(unordered, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


@cases("name", CHOICES)
def test_it_is_what_kustomize_makes(name, rendered, kustomize):
    """For every component, every two of them and all at once, in every mode."""
    mode, chosen = CHOICES[name]
    made = kustomize({"resources": [f"../{mode}"], "components": [f"../../components/{each}" for each in chosen]})
    assert unordered(documents(rendered[name])) == unordered(comparable(made))


def test_lint_finds_no_problem():
    """Not even a warning; that an icon is recommended is none."""
    assert [each for each in helm()["messages"] if each["severity"] > 1] == []


def test_every_component_is_a_value():
    """And so is every image; a mode is an overlay."""
    assert set(VALUES["components"]) == {value_of(name) for name in components()}
    assert set(VALUES["images"]) == set(IMAGES.values())
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert schema["properties"].keys() == VALUES.keys()
    assert set(schema["properties"]["components"]["properties"]) == set(VALUES["components"])
    assert set(schema["properties"]["mode"]["enum"]) == {"observe", *MODES}


def test_values_reach_the_pods():
    """Images, the fleet in the settings and in the broker's ACL, and variables, which replace those of components."""
    values = {
        "fleet": "training",
        "images": {"agent": "registry.internal:5000/agent@sha256:00", "broker": "registry.internal/mosquitto:2.1"},
        "components": {"gkeA4": True},
        "environment": {"MUSTER_EXPECTED_GPUS": "4", "MUSTER_AGENT__SPREAD_S": "120"},
        "coordinatorEnvironment": {"MUSTER_STORE__KEEP_DAYS": "10"},
    }
    made = documents(helm(values={"mine": values})["mine"])
    agent = made["DaemonSet", "muster-agent"]["spec"]["template"]["spec"]
    images = {container["image"] for container in (*agent["containers"], *agent["initContainers"])}
    assert images == {"registry.internal:5000/agent@sha256:00"}
    environment = made["ConfigMap", "muster-environment"]["data"]
    assert environment.items() >= {("MUSTER_EXPECTED_GPUS", "4"), ("MUSTER_FLEET", "training")}
    assert environment["MUSTER_PLUGINS__COLLECTIVE__PROFILE"] == "gib-a4"
    assert made["ConfigMap", "muster-coordinator-environment"]["data"] == {"MUSTER_STORE__KEEP_DAYS": "10"}
    acl = made["ConfigMap", "muster-broker"]["data"]["mosquitto.acl"]
    assert acl.count("muster/v1/training/") == 9
    assert "muster/v1/default/" not in acl


def test_a_change_of_settings_restarts_the_pods_that_read_them():
    """As with kustomize, whose ConfigMaps get another name."""
    asked = {"before": {}, "after": {"coordinatorEnvironment": {"MUSTER_STORE__KEEP_DAYS": "10"}}}
    answers = helm(values=asked)
    names = ("daemonset-muster-agent", "deployment-muster-coordinator", "deployment-muster-broker")
    before, after = (
        [answers[each]["templates"][f"muster/templates/{name}.yaml"] for name in names] for each in ("before", "after")
    )
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]


@pytest.fixture(scope="module")
def refused():
    """What Helm answers to the wrong values."""
    return helm(values={str(number): values for number, (values, _) in enumerate(WRONG)})


@cases("number", range(len(WRONG)))
def test_wrong_values_are_refused(number, refused):
    """With the name of what is wrong: a typing error must not be a default."""
    assert WRONG[number][1] in refused[str(number)]["error"]


def test_the_guide_s_values_are_right():
    """Its example can be used as it stands, and its table has every value with its default."""
    (example,) = (block for block in YAML if "components" in block and "mode" in block)
    made = documents(helm(values={"guide": example})["guide"])
    assert made["ConfigMap", "muster-environment"]["data"].items() >= example["environment"].items()
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", GUIDE[GUIDE.index("### Helm") :], re.MULTILINE))
    assert VALUES.keys() <= told.keys()
    for name in ("mode", "fleet", "environment", "coordinatorEnvironment"):
        assert told[name] == f"`{VALUES[name]}`"


def test_versions_agree():
    """The chart has the version of muster, and by default its images."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == PROJECT["version"]
    assert {VALUES["images"][name].rpartition(":")[2] for name in ("agent", "coordinator")} == {chart["appVersion"]}
