"""A coordinator and an agent in containers of their images, at a real broker with the settings of docker/."""

import os
import time

import pytest
from benchmarks.free_ports import free_port
from tests.brokers import docker_settings, write_passwords
from tests.images.containers import USER, container
from tests.waiting import wait_for

from muster.client import Client
from muster.errors import Unavailable

TOKEN = "a-token-of-sixteen-characters"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory, new_mosquitto, coordinator, agent):
    """A client of the coordinator, the directories of both containers, and how long the API took to answer."""
    directory = tmp_path_factory.mktemp("fleet")
    accounts = {"coordinator": "secret-c", "node-1": "secret-n"}
    write_passwords(directory / "passwords", accounts)
    with new_mosquitto(docker_settings(directory / "passwords")) as broker:
        port = free_port()
        began = time.monotonic()
        with container(
            coordinator,
            directory / "coordinator",
            environment=settings(directory / "coordinator", broker.url, "coordinator", accounts)
            | {"MUSTER_HTTP__LISTEN": f"127.0.0.1:{port}", "MUSTER_HTTP__TOKEN_FILE": "/var/lib/muster/token"},
        ):
            client = Client(f"http://127.0.0.1:{port}", TOKEN)
            wait_for(lambda: answers(client), "the coordinator's API")
            took = time.monotonic() - began
            own = {
                "MUSTER_NODE": "node-1",
                "MUSTER_AGENT__SPREAD_S": "0",
                "MUSTER_AGENT__LISTEN": f"127.0.0.1:{free_port()}",
            }
            with container(
                agent,
                directory / "agent",
                environment=settings(directory / "agent", broker.url, "node-1", accounts) | own,
            ):
                yield client, directory, took


def settings(directory, url, name, accounts):
    """The environment of a container, whose volume gets the files that it names."""
    data = directory / "data"
    data.mkdir(parents=True)
    for file, content in (("password", accounts[name]), ("token", TOKEN)):
        (data / file).write_text(content)
        (data / file).chmod(0o600)
        os.chown(data / file, USER, USER)
    return {
        "MUSTER_BROKER__URL": url,
        "MUSTER_BROKER__USERNAME": name,
        "MUSTER_BROKER__PASSWORD_FILE": "/var/lib/muster/password",
    }


def answers(client):
    try:
        return client.get("fleet")
    except Unavailable:
        return None


def test_the_coordinator_answers_soon(fleet):
    """With a new database. The time is for the report: how fast this machine is says nothing about the image."""
    _client, _directory, took = fleet
    print(f"coordinator answers after {took:.1f} s")
    assert took < 60


def test_the_node_reports(fleet):
    """Results of background checks pass the broker's ACL and reach the database."""
    client, _directory, _took = fleet
    wait_for(lambda: client.pages("runs", node="node-1")["items"], "runs of the node")
    (node,) = client.pages("nodes")["items"]
    assert (node["name"], node["lost"]) == ("node-1", False)


def test_data_lie_in_the_volume_and_belong_to_the_user(fleet):
    """The database of each, written by user 64200."""
    _client, directory, _took = fleet
    for part in ("coordinator", "agent"):
        files = list((directory / part / "data").rglob("*.db"))
        assert files
        assert {file.stat().st_uid for file in files} == {USER}
