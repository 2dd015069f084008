"""Labels with the place of a machine, from a metadata server on loopback."""

import pytest
from tests.cases import cases
from tests.plugins.machines.cloud.conftest import by_path, http

from muster.topology_labels import TopologyLabels, topology_of
from muster_plugins.machines.cloud import plugin
from muster_plugins.machines.cloud.places import ZONE, aws_labels, azure_labels, google_labels

GOOGLE = {
    "/computeMetadata/v1/instance/zone": "projects/4711/zones/us-central1-b",
    "/computeMetadata/v1/instance/attributes/physical_host": "/ab12/cd34/ef56",
}


@pytest.mark.parametrize(
    ("cloud", "texts", "labels"),
    [
        ("Google Cloud", {"/computeMetadata/v1/instance/zone": "projects/1/zones/europe-west4-a"}, "europe-west4-a"),
        ("AWS", {"/latest/meta-data/placement/availability-zone": "us-east-1a"}, "us-east-1a"),
        (
            "Azure",
            {"/metadata/instance/compute/location": "eastus", "/metadata/instance/compute/zone": "2"},
            "eastus-2",
        ),
    ],
)
def test_each_cloud_says_the_zone(server, machine, cloud, texts, labels):
    """Under the key that every Kubernetes uses."""
    server.answer = by_path(texts)
    assert plugin.labels(machine(cloud), server.address) == {ZONE: labels}


def test_the_physical_host_gives_the_position(server, machine):
    """Ranks are placed by it, and a sweep by block or rack needs no more."""
    server.answer = by_path(GOOGLE)
    found = plugin.labels(machine("Google Cloud"), server.address)
    where = topology_of(found, TopologyLabels())
    assert (where.block, where.rack, where.host) == ("ab12", "cd34", "ef56")


@cases(
    ("labels", "answers"),
    [
        (google_labels, [None, None]),
        (google_labels, ["projects/1/zones/<b>", "/a/b"]),
        (google_labels, ["", "/a b/c\u00e9/" + "x" * 64]),
        (aws_labels, [None, ""]),
        (azure_labels, ["eastus", ""]),
        (azure_labels, [None, "1"]),
    ],
)
def test_what_is_no_value_of_a_label_is_left_out(labels, answers):
    """A server that is not the cloud's may answer anything."""
    assert labels(answers) == {}


def test_the_place_is_asked_for_once(server, machine):
    """And again only while the server does not answer, or knows nothing yet."""
    root = machine("Google Cloud")
    server.answer = lambda _: b"SSH-2.0-OpenSSH_9.2\r\n"
    assert plugin.labels(root, server.address) == {}
    server.answer = lambda _: http("", "503 Service Unavailable")
    assert plugin.labels(root, server.address) == {}
    server.answer = by_path(GOOGLE)
    assert plugin.labels(root, server.address) == plugin.labels(root, server.address) != {}
    assert len(server.requests) == 5


def test_a_redirect_is_not_followed(server, machine):
    """It would lead to a host that the cloud does not name."""
    server.answer = lambda _: http("", f"302 Found\r\nLocation: http://127.0.0.1:{server.address[1]}/other")
    assert plugin.labels(machine("Google Cloud"), server.address) == {}
    assert not any("/other" in request for request in server.requests)
