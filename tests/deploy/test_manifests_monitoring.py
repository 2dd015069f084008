"""The components for the Prometheus Operator: what its objects name is there, and says what it should."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")
COMPONENT = ROOT / "daemonset" / "components" / "monitoring"

pytestmark = pytest.mark.parametrize("variant", ["everything"], indirect=True)


def test_the_coordinator_is_found_and_answers(manifests, pods):
    """By the labels of its Service, at a port of it, with a token that may read; the job has the name in the alerts."""
    monitor = manifests["ServiceMonitor", "muster-coordinator"]["spec"]
    service = manifests["Service", "muster-coordinator"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    mounted_as_file(
        pods["muster-coordinator"], "MUSTER_HTTP__READ_TOKEN_FILE", endpoint["authorization"]["credentials"]
    )
    assert f'up{{job="{service["metadata"]["name"]}"}}' in (COMPONENT / "alerts.yaml").read_text(encoding="utf-8")


def test_no_other_service_has_the_labels(manifests):
    """The Prometheus Operator would scrape it as a coordinator."""
    labels = manifests["ServiceMonitor", "muster-coordinator"]["spec"]["selector"]["matchLabels"]
    found = [
        name
        for (kind, name), document in manifests.items()
        if kind == "Service" and labels.items() <= document["metadata"].get("labels", {}).items()
    ]
    assert found == ["muster-coordinator"]


def test_the_agents_are_found_and_answer(manifests, pods):
    """By the labels of their pods, at a port that they listen on, with the token that they are started with."""
    monitor = manifests["PodMonitor", "muster-agent"]["spec"]
    template = manifests["DaemonSet", "muster-agent"]["spec"]["template"]
    assert monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (endpoint,) = monitor["podMetricsEndpoints"]
    (container,) = pods["muster-agent"]["containers"]
    (port,) = (port for port in container["ports"] if port["name"] == endpoint["port"])
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert variables["MUSTER_AGENT__LISTEN"] == f"0.0.0.0:{port['containerPort']}"
    mounted_as_file(pods["muster-agent"], "MUSTER_AGENT__TOKEN_FILE", endpoint["authorization"]["credentials"])


def mounted_as_file(pod, variable, credentials):
    """The file that the setting names is the key of the Secret that Prometheus sends."""
    (container,) = pod["containers"]
    (path,) = (Path(each["value"]) for each in container["env"] if each["name"] == variable)
    (mount,) = (mount for mount in container["volumeMounts"] if mount["mountPath"] == str(path.parent))
    (volume,) = (volume for volume in pod["volumes"] if volume["name"] == mount["name"])
    assert (volume["secret"]["secretName"], path.name) == (credentials["name"], credentials["key"])


def test_the_guide_creates_both_secrets(manifests):
    """With the names, the namespace and the key that the components use."""
    command = re.compile(r"^\$ kubectl -n (\S+) create secret generic (\S+) --from-literal=(\w+)=", re.MULTILINE)
    (service,) = manifests["ServiceMonitor", "muster-coordinator"]["spec"]["endpoints"]
    (pod,) = manifests["PodMonitor", "muster-agent"]["spec"]["podMetricsEndpoints"]
    used = (endpoint["authorization"]["credentials"] for endpoint in (service, pod))
    assert command.findall(GUIDE) == [("muster", each["name"], each["key"]) for each in used]


def test_rules_and_dashboards_are_those_of_the_files(manifests):
    """Each dashboard is a key of the ConfigMap that Grafana's sidecar finds."""
    rules = yaml.safe_load((COMPONENT / "alerts.yaml").read_text(encoding="utf-8"))
    assert manifests["PrometheusRule", "muster"]["spec"] == rules
    dashboards = manifests["ConfigMap", "muster-dashboards"]
    assert dashboards["metadata"]["labels"] == {"grafana_dashboard": "1"}
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in COMPONENT.glob("dashboards/*.json")}
    assert {name: json.loads(text) for name, text in dashboards["data"].items()} == files
