"""The probe for notices, with a metadata server on loopback that gives some, hangs and comes back."""

import json

import pytest
from tests.cases import cases
from tests.plugins.machines.cloud.conftest import by_path, http

from muster import Config
from muster.config import Settings
from muster_plugins.machines.cloud import plugin
from muster_plugins.machines.cloud.plugin import muster_departures
from muster_plugins.shared import dmi

PREEMPTED = {"/computeMetadata/v1/instance/preempted": "TRUE", "/computeMetadata/v1/instance/maintenance-event": "NONE"}
SPOT = {"/latest/meta-data/spot/instance-action": json.dumps({"action": "terminate", "time": "2026-11-27T12:00:00Z"})}
STARTED = {"EventType": "Terminate", "EventStatus": "Started", "NotBefore": "", "Resources": ["vm-7"]}
AZURE = {
    "/metadata/instance/compute/name": "vm-7",
    "/metadata/scheduledevents": json.dumps({"DocumentIncarnation": 2, "Events": [STARTED]}),
}
HEADERS = {
    "Google Cloud": "Metadata-Flavor: Google",
    "AWS": "X-aws-ec2-metadata-token: dG9rZW4=",
    "Azure": "Metadata: true",
}


@pytest.mark.parametrize(
    ("cloud", "texts", "why"),
    [
        ("Google Cloud", PREEMPTED, "Google Cloud preempts it"),
        ("AWS", SPOT, "AWS ends its spot machine"),
        ("Azure", AZURE, "Azure deletes it"),
    ],
)
def test_each_cloud_gives_notice(server, machine, cloud, texts, why):
    """Before, the machine stays: AWS answers 404 as long as there is no notice."""
    (found,) = plugin.departures(machine(cloud), server.address)
    server.answer = by_path({})
    assert found.probe() is None
    server.answer = by_path(texts)
    assert found.probe() == why
    assert all(HEADERS[cloud] in request for request in server.requests if not request.startswith("PUT"))


def test_the_last_answer_counts_while_the_server_does_not_answer(server, machine):
    """A machine that is about to end often loses its network first; the server is then left alone for a minute."""
    (found,) = plugin.departures(machine("Google Cloud"), server.address)
    server.answer = by_path(PREEMPTED)
    assert found.probe() == "Google Cloud preempts it"
    server.answer = lambda _: b""
    asked = len(server.requests)
    assert [found.probe() for _ in range(3)] == ["Google Cloud preempts it"] * 3
    assert len(server.requests) == asked + 1


def test_a_notice_that_is_withdrawn_is_over(server, machine):
    """As after a maintenance that the machine has survived."""
    (found,) = plugin.departures(machine("Google Cloud"), server.address)
    server.answer = by_path({"/computeMetadata/v1/instance/maintenance-event": "TERMINATE_ON_HOST_MAINTENANCE"})
    assert found.probe() == "Google Cloud maintains its host"
    server.answer = by_path({"/computeMetadata/v1/instance/maintenance-event": "NONE"})
    assert found.probe() is None


@pytest.mark.parametrize("status", ["503 Service Unavailable", "302 Found\r\nLocation: /other"])
def test_an_answer_without_a_text_is_no_notice(server, machine, status):
    """Nor is it a reason to stop asking."""
    (found,) = plugin.departures(machine("Google Cloud"), server.address)
    server.answer = lambda _: http("TRUE", status)
    assert [found.probe(), found.probe()] == [None, None]
    assert len(server.requests) == 6


def test_bare_metal_has_no_probe(tmp_path):
    """So it sends nothing to anybody."""
    (tmp_path / "sys_vendor").write_text("Dell Inc.")
    assert [*plugin.departures(tmp_path, ("127.0.0.1", 1))] == []


@cases(("section", "probes"), [({}, 1), ({"departures": False}, 0)])
def test_a_setting_turns_the_notices_off(tmp_path_factory, section, probes):
    """On Azure, asking for them changes how the cloud treats the machine."""
    root = tmp_path_factory.mktemp("dmi")
    (root / "sys_vendor").write_text("Amazon EC2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dmi, "SYSFS", root)
        config = Config(Settings.model_validate({"plugins": {"cloud": section}}))
        assert len([*muster_departures(config)]) == probes
