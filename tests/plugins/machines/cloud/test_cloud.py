"""The machine type by the metadata server of a cloud: a real one answers, hangs, drips or lies."""

import time

import pytest
from tests.cases import cases
from tests.plugins.machines.cloud.conftest import FOUND, http

from muster.model import MachineTypeSource
from muster_plugins.machines.cloud import plugin
from muster_plugins.machines.cloud.clouds import CLOUDS, cloud_of
from muster_plugins.machines.cloud.metadata_server import NoMetadata, ask_machine_type

GOOGLE, AWS, AZURE = CLOUDS


@cases(("cloud", "said"), [*FOUND.items()])
def test_a_machine_shows_its_cloud_by_its_firmware(tmp_path_factory, cloud, said):
    """The one field that the vendor documents."""
    root = tmp_path_factory.mktemp("dmi")
    field, value = said
    (root / field).write_text(value)
    assert (found := cloud_of(root)) is not None
    assert found.name == cloud


def test_bare_metal_asks_nobody(tmp_path):
    """It would wait for a server that is not there; this test may open no connection."""
    (tmp_path / "product_name").write_text("PowerEdge XE9680")
    (tmp_path / "sys_vendor").write_text("Dell Inc.")
    assert [*plugin.machine_types(tmp_path, ("127.0.0.1", 1))] == []


def test_google_cloud_says_the_machine_type_with_its_project(server):
    """The request has the header without which the server refuses."""
    server.answer = lambda _: http("projects/4711/machineTypes/a4-highgpu-8g")
    assert ask_machine_type(GOOGLE, server.address) == "a4-highgpu-8g"
    (request,) = server.requests
    assert request.startswith("GET /computeMetadata/v1/instance/machine-type HTTP/1.1\r\n")
    assert "\r\nMetadata-Flavor: Google\r\n" in request


def test_aws_wants_a_token_first(server):
    """As version 2 of its service does; the second request shows it."""
    server.answer = lambda request: http("dG9rZW4=" if request.startswith("PUT") else "p5.48xlarge")
    assert ask_machine_type(AWS, server.address) == "p5.48xlarge"
    token, wanted = server.requests
    assert token.startswith("PUT /latest/api/token ")
    assert "\r\nX-aws-ec2-metadata-token-ttl-seconds: 60\r\n" in token
    assert wanted.startswith("GET /latest/meta-data/instance-type ")
    assert "\r\nX-aws-ec2-metadata-token: dG9rZW4=\r\n" in wanted


def test_azure_says_its_size_as_text(server):
    """With the header against requests that a proxy passes on."""
    server.answer = lambda _: http("Standard_ND96isr_H100_v5")
    assert ask_machine_type(AZURE, server.address) == "Standard_ND96isr_H100_v5"
    assert "\r\nMetadata: true\r\n" in server.requests[0]


def test_no_proxy_sees_the_request(server, monkeypatch):
    """The address means this machine's own server."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.answer = lambda _: http("n/machineTypes/a4-highgpu-8g")
    assert ask_machine_type(GOOGLE, server.address) == "a4-highgpu-8g"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (http("no", "404 Not Found"), "HTTP status 404"),
        (http("x" * 70_000), "an answer that no metadata server gives"),
        (http("a4\x1b[31m"), "is not a machine type"),
        (http("", "301 Moved Permanently\r\nLocation: http://127.0.0.1:1/"), "HTTP status 301"),
        (http(b"\xff\xfe"), "can't decode byte"),
        (http("projects/1/machineTypes/<b>"), "is not a machine type"),
        (http("projects/1/machineTypes/"), "is not a machine type"),
        (http("y" * 64), "is not a machine type"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0"),
        (b"", "Remote end closed connection"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "got more than 100 headers"),
    ],
    ids=[
        "absent",
        "long",
        "control",
        "redirect",
        "bytes",
        "markup",
        "nothing",
        "longer than a label",
        "SSH",
        "closed",
        "headers",
    ],
)
def test_an_answer_of_another_kind_is_no_machine_type(server, answer, why):
    """A server that is not the cloud's may answer anything."""
    server.answer = lambda _: answer
    with pytest.raises(NoMetadata, match=why):
        ask_machine_type(GOOGLE, server.address)


def test_a_token_with_a_line_break_adds_no_header(server):
    """It would be a request of the server's own making."""
    server.answer = lambda _: http("a\r\nX-Other: b")
    with pytest.raises(NoMetadata, match="an answer that no metadata server gives"):
        ask_machine_type(AWS, server.address)
    assert len(server.requests) == 1


@pytest.mark.parametrize("drips", [False, True])
def test_a_server_that_hangs_or_drips_delays_nobody(server, drips):
    """The deadline is for the whole conversation, not for each byte."""
    server.drips = drips
    began = time.monotonic()
    with pytest.raises(NoMetadata, match="no answer in time"):
        ask_machine_type(GOOGLE, server.address, within_s=0.3)
    assert time.monotonic() - began < 2


def test_the_server_is_asked_again_until_it_answers_and_then_no_more(server, machine):
    """It may start later than the agent; the machine keeps its type."""
    root = machine("Google Cloud")
    server.answer = lambda _: http("", "503 Service Unavailable")
    assert [*plugin.machine_types(root, server.address)] == []
    server.answer = lambda _: http("projects/1/machineTypes/a3-ultragpu-8g")
    for _ in range(3):
        (found,) = plugin.machine_types(root, server.address)
        assert (found.name, found.source, found.said_by) == ("a3-ultragpu-8g", MachineTypeSource.CLOUD, "Google Cloud")
    assert len(server.requests) == 2


@pytest.mark.usefixtures("live")
def test_without_a_server_there_is_no_machine_type(machine):
    """A closed port is answered at once."""
    assert [*plugin.machine_types(machine("Azure"), ("127.0.0.1", 1))] == []
