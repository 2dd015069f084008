"""`muster broker check` against brokers that do what muster needs, and brokers that do not."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest
from benchmarks.free_ports import free_address
from tests.brokers import docker_settings, installed, write_passwords
from tests.deploy.clients import NODE, client
from tests.muster_process import run_muster

from muster.broker_acl import COORDINATOR
from muster.wire.topics import Topics
from muster_coordinator.runtime.broker import embedded_broker

DELAYED_ACK_MS = 40.0
"""The least time for which Linux keeps an acknowledgement back (TCP_DELACK_MIN); a busy machine adds to it."""


def env_of(data_dir):
    return {**os.environ, "MUSTER_DATA_DIR": str(data_dir)}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory, passwords) -> Path:
    path: Path = tmp_path_factory.mktemp("accounts") / "passwords"
    write_passwords(path, {name: name for name in passwords})
    return path


def test_the_shipped_broker_does_all(new_mosquitto, mosquitto_program, accounts, checked):
    """With an account for the coordinator and one for a node."""
    with new_mosquitto(docker_settings(accounts), mosquitto_program) as broker:
        code, found = checked(broker.url, NODE)
    assert (code, [text for text in found.values() if not text.startswith("PASS ")]) == (0, [])
    assert len(found) == 12


async def test_a_broker_that_has_served_a_coordinator_does_all(new_mosquitto, accounts, checked):
    """What it has kept of the coordinator is not taken for something that the node has published."""
    topics = Topics("default")
    with new_mosquitto(docker_settings(accounts), installed()) as broker:
        async with client(broker.port, COORDINATOR) as coordinator:
            for topic in (topics.coordinator, topics.references):
                await coordinator.publish(topic, b"{}", qos=1, retain=True)
        code, found = await asyncio.to_thread(checked, broker.url, NODE)
    assert (code, [text for text in found.values() if not text.startswith("PASS ")]) == (0, [])


def test_a_broker_with_its_own_defaults_is_found_wanting(new_mosquitto, checked):
    """It delays small messages, and drops what a busy client has not read. On loopback, accounts are not asked for."""
    with new_mosquitto("allow_anonymous true", installed()) as broker:
        code, found = checked(broker.url, account=None)
    assert code == 1
    slow = re.match(r"WARN ([\d.]+) ms", found.pop("latency"))
    assert slow
    assert float(slow[1]) >= DELAYED_ACK_MS
    assert "max_queued_messages" in found.pop("slow reader")
    assert {text.split()[0] for text in found.values()} == {"PASS", "SKIPPED"}


def test_a_broker_without_an_access_list_is_refused(new_mosquitto, accounts, checked):
    """Strangers get in, and a node may speak for another and read what is meant for it."""
    settings = f"allow_anonymous true\npassword_file {accounts}\nset_tcp_nodelay true"
    with new_mosquitto(settings, installed()) as broker:
        code, found = checked(broker.url, NODE)
    assert code == 2
    wrong = {check for check, text in found.items() if text.startswith("FAIL ")}
    assert wrong == {"strangers", "a node's writing", "a node's reading"}


def test_an_account_of_another_name_cannot_speak_for_the_node(new_mosquitto, accounts, passwords, tmp_path):
    """The password of n1's account is not n1's name: the topics are another node's."""
    with new_mosquitto(docker_settings(accounts), installed()) as broker:
        options = ("--node", "n9", "--node-password-file", str(passwords[NODE]), "--json")
        env = {"MUSTER_BROKER__USERNAME": COORDINATOR, "MUSTER_BROKER__PASSWORD_FILE": str(passwords[COORDINATOR])}
        done = run_muster("broker", "check", broker.url, *options, env=env | {"MUSTER_DATA_DIR": str(tmp_path)})
    *_, last = json.loads(done.stdout)
    assert (done.returncode, last["check"], last["verdict"]) == (2, "connection", "FAIL")
    assert "n9 does not get in" in last["detail"]


def test_a_broker_that_is_away_ends_the_check(new_mosquitto, checked):
    """With one line that says where it was looked for, and without a traceback."""
    with new_mosquitto() as gone:
        url = gone.url
    code, found = checked(url)
    assert (code, [*found]) == (2, ["connection"])
    assert found["connection"].startswith(f"FAIL no broker answers at {url}: [Errno 111] Connection refused; ")


async def test_the_embedded_broker_does_what_one_host_needs(checked):
    """It lets two clients share a client id, which nothing on one host does."""
    async with embedded_broker(free_address()) as url:
        code, found = await asyncio.to_thread(checked, url, account=None)
    assert code == 2
    assert {check for check, text in found.items() if text.startswith("FAIL ")} == {"one connection"}


def test_names_with_dots_are_refused_for_rabbitmq(tmp_path):
    """With the reason, before anything is printed."""
    done = run_muster("broker", "acl", "rabbitmq", "n1", "n2.rack-2", env=env_of(tmp_path))
    assert (done.returncode, done.stdout) == (64, "")
    assert "'n2.rack-2': RabbitMQ takes a dot for a slash" in done.stderr


@pytest.mark.parametrize("arguments", [["rabbitmq"], ["mosquitto", "n1"]])
def test_only_rabbitmq_needs_the_names_of_nodes(tmp_path, arguments):
    """And it needs at least one."""
    done = run_muster("broker", "acl", *arguments, env=env_of(tmp_path))
    assert (done.returncode, done.stdout) == (64, "")
    assert "names of nodes for rabbitmq" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ftp://broker"], "must be mqtt://host[:port] or mqtts://host[:port]"),
        (["mqtt://127.0.0.1:1", "--node-password-file", "x"], "say which node this account belongs to"),
        (["mqtt://127.0.0.1:1", "--node", "n1", "--node-password-file", "none"], "cannot read none"),
        (["mqtts://127.0.0.1:1", "--node", "n1", "--node-cert", "none"], "cannot use none"),
    ],
)
def test_wrong_input_is_refused_with_what_would_be_right(tmp_path, arguments, words):
    """Without a traceback."""
    done = run_muster("broker", "check", *arguments, env=env_of(tmp_path), cwd=tmp_path)
    assert done.returncode in (2, 64)
    assert words in " ".join((done.stdout + done.stderr).replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_a_node_needs_a_certificate_where_the_coordinator_has_one(tmp_path):
    """The refusal names the option; the broker would only say that this client has none."""
    env = env_of(tmp_path) | {"MUSTER_BROKER__CERT_FILE": "tls.crt", "MUSTER_BROKER__KEY_FILE": "tls.key"}
    done = run_muster("broker", "check", "mqtts://127.0.0.1:1", "--node", "n1", env=env)
    assert (done.returncode, done.stdout) == (64, "")
    assert "Invalid value for --node-cert: missing, because broker.cert_file is set: name the certificate of n1" in (
        done.stderr
    )
