"""Who can reach whom: ports are the same in settings, containers, Services, probes and policies."""

import tomllib
from urllib.parse import urlsplit

import pytest

from muster.addresses import split_address


@pytest.fixture
def container(pods):
    """By the name of what starts it, the container of a pod."""
    return lambda name: pods[name]["containers"][0]


@pytest.fixture
def allowed(manifests):
    """The ports that the policies open for pods of a name, in a direction; those that select all pods open none."""

    def ports(name, direction):
        chosen = [
            document["spec"]
            for (kind, _), document in manifests.items()
            if kind == "NetworkPolicy"
            and document["spec"]["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": name}}
        ]
        rules = [rule for spec in chosen for rule in spec.get(direction, ())]
        assert all(rule.keys() == {"ports"} for rule in rules)
        return {port["port"] for rule in rules for port in rule["ports"]}

    return ports


def number(container, port):
    """A port of a container by its name."""
    return next(each["containerPort"] for each in container["ports"] if each["name"] == port)


@pytest.mark.parametrize("name", ["muster-coordinator", "muster-broker", "muster-signer"])
def test_service_leads_to_the_pods(manifests, container, name):
    """Its selector is their label, and its port the one that they have open."""
    service = manifests["Service", name]["spec"]
    assert service["selector"] == {"app.kubernetes.io/name": name}
    assert manifests["Deployment", name]["spec"]["template"]["metadata"]["labels"] == service["selector"]
    (port,) = service["ports"]
    assert number(container(name), port["targetPort"]) == port["port"]


def test_coordinator_is_reached_and_probed_where_it_listens(manifests, container, allowed):
    """At the paths that need no token."""
    coordinator = container("muster-coordinator")
    listen = next(each["value"] for each in coordinator["env"] if each["name"] == "MUSTER_HTTP__LISTEN")
    assert split_address(listen) == ("0.0.0.0", number(coordinator, "http"))
    assert allowed("muster-coordinator", "ingress") == {"http"}
    paths = {probe: coordinator[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {
        "startupProbe": {"port": "http", "path": "/healthz"},
        "livenessProbe": {"port": "http", "path": "/healthz"},
        "readinessProbe": {"port": "http", "path": "/readyz"},
    }


def test_coordinator_is_given_time(container):
    """Half an hour to migrate tables and load the fleet; afterwards it may hang for a minute."""
    coordinator = container("muster-coordinator")
    patience_s = {
        probe: coordinator[probe]["periodSeconds"] * coordinator[probe]["failureThreshold"]
        for probe in ("startupProbe", "livenessProbe")
    }
    assert patience_s == {"startupProbe": 1800, "livenessProbe": 60}
    assert coordinator["livenessProbe"]["timeoutSeconds"] >= 5


def test_everybody_finds_the_broker(manifests, container, allowed):
    """The settings name its Service, and its policy lets agents in, which come from the nodes' addresses."""
    settings = tomllib.loads(manifests["ConfigMap", "muster-settings"]["data"]["muster.toml"])
    url = urlsplit(settings["broker"]["url"])
    assert url.hostname == "muster-broker.muster.svc"
    assert url.port == number(container("muster-broker"), "mqtts")
    assert allowed("muster-broker", "ingress") == {"mqtts"}
    assert f"listener {url.port}\n" in manifests["ConfigMap", "muster-broker"]["data"]["mosquitto.conf"]


def test_coordinator_gets_out_no_further_than_it_must(variant, allowed):
    """To names and the broker; to the API server where it acts; with standbys also to PostgreSQL and the leader."""
    api = {443, 6443} if variant in ("dry-run", "enforce", "gke-a4", "gke-a3u", "standbys", "everything") else set()
    others = {5432, 8787} if variant in ("standbys", "everything") else set()
    assert allowed("muster-coordinator", "egress") == {53, 8883} | api | others
    assert allowed("muster-broker", "egress") == set()


def test_signer_has_two_connections(allowed):
    """From agents, and to the API server."""
    assert allowed("muster-signer", "ingress") == {"https"}
    assert allowed("muster-signer", "egress") == {443, 6443}


def test_nothing_else_is_open(manifests):
    """What no policy names is closed, in both directions."""
    spec = manifests["NetworkPolicy", "nothing-else"]["spec"]
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
