"""`muster doctor` on real agents, coordinators, brokers and databases: what is well, and what is not."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
from benchmarks.free_ports import free_address
from tests.brokers import docker_settings, installed, write_passwords
from tests.coordinator.conftest import Coordinator
from tests.deploy.clients import NODE, OTHER
from tests.faults.parts import Agent
from tests.muster_process import run_muster

from muster.broker_acl import COORDINATOR

QUIET = {"gemm": {"enabled": False}, "memory": {"enabled": False}, "training": {"enabled": False}}
ENFORCED = {"mode": "enforce", "budget": {"share": "10%"}}
CLOCK = {"PASS", "WARN"}
"""Whether the machine of the tests has a synchronised clock is its own matter."""


def examined(role, **settings):
    """The exit code, and the verdict and sentence of each check; of several with one name, the worst."""
    env = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    done = run_muster("doctor", role, "--json", env=env)
    assert done.returncode in (0, 1, 2), done.stderr
    found: dict[str, tuple[str, str]] = {}
    for item in json.loads(done.stdout):
        if item["check"] not in found or found[item["check"]][0] == "PASS":
            found[item["check"]] = item["verdict"], item["detail"]
    assert found.pop("clock")[0] in CLOCK
    return found


def verdicts(found):
    return {check: verdict for check, (verdict, _) in found.items()}


@pytest.fixture(scope="module")
def passwords(tmp_path_factory) -> Path:
    """Files with the passwords of accounts, each named as its account; and the broker's own."""
    directory: Path = tmp_path_factory.mktemp("accounts")
    for name in (COORDINATOR, NODE, OTHER):
        (directory / name).write_text(name)
    write_passwords(directory / "passwords", {name: name for name in (COORDINATOR, NODE, OTHER)})
    return directory


@pytest.fixture(scope="module")
def broker(new_mosquitto, passwords):
    """Mosquitto with the shipped settings and access list."""
    with new_mosquitto(docker_settings(passwords / "passwords"), installed()) as running:
        yield running


@pytest.fixture
def node(broker, passwords, tmp_path):
    """The settings of an agent of that broker, with one simulated GPU."""
    return {
        "node": NODE,
        "data_dir": str(tmp_path / "agent"),
        "broker": {"url": broker.url, "username": NODE, "password_file": str(passwords / NODE)},
        "agent": {"listen": free_address()},
        "checks": QUIET,
        "plugins": {"simulated": {"enabled": True, "devices": 1}},
    }


def as_environment(settings):
    """Settings as variables."""
    return {f"MUSTER_{name.upper()}": json.dumps(it) if isinstance(it, dict) else it for name, it in settings.items()}


def test_an_agent_that_does_not_run_yet(node):
    """All that it needs is there; the way to the broker is tried with its account."""
    found = examined("agent", **as_environment(node))
    assert verdicts(found) == {
        "settings": "PASS",
        "plugins": "PASS",
        "agent": "WARN",
        "certificates": "PASS",
        "broker": "PASS",
        "access": "PASS",
        "disk": "PASS",
        "devices": "PASS",
        "machine type": "PASS",
    }
    assert found["devices"][1].startswith("1 device found: ")


def test_an_agent_that_runs_is_not_disturbed(node, tmp_path, eventually):
    """Its connection is used instead of another one, for which this broker would end it."""
    agent = Agent("agent", tmp_path / "agent.log", node, {})
    agent.start()
    try:
        agent.wait_until_ready()
        found = examined("agent", **as_environment(node))
        assert agent.log("broker_away") == []
    finally:
        agent.kill()
    assert {check: found[check][0] for check in ("agent", "broker", "access")} == {
        "agent": "PASS",
        "broker": "PASS",
        "access": "SKIPPED",
    }


def test_what_is_wrong_with_an_agent_is_said(node, passwords, tmp_path):
    """A wrong password, devices that are not there, a directory that cannot be written."""
    wrong = node["broker"] | {"password_file": str(passwords / OTHER)}
    node |= {"broker": wrong, "expected_gpus": 8, "data_dir": "/proc/self/muster"}
    found = examined("agent", **as_environment(node))
    assert {check for check, verdict in verdicts(found).items() if verdict == "FAIL"} == {"broker", "devices", "disk"}
    assert "Not authorized" in found["broker"][1]
    assert "expected_gpus is 8" in found["devices"][1]


async def test_a_broker_that_shows_a_node_the_others_is_named(node, new_mosquitto, eventually):
    """It has kept the heartbeat of another node, and no access list."""
    with new_mosquitto("allow_anonymous true") as open_to_all:
        other = Agent("agent", Path(node["data_dir"] + ".log"), node | {
            "node": OTHER, "data_dir": node["data_dir"] + "-other", "broker": {"url": open_to_all.url},
            "agent": {"listen": "127.0.0.1:0"},
        }, {})  # fmt: skip
        other.start()
        try:
            other.wait_until_ready()
            found = examined("agent", **as_environment(node | {"broker": {"url": open_to_all.url}}))
        finally:
            other.kill()
    verdict, text = found["access"]
    assert verdict == "FAIL"
    assert text.startswith(f"the account of {NODE} may read muster/v1/default/node/{OTHER}/presence")


@pytest.fixture
def coordinator(broker, passwords, tmp_path):
    """A coordinator at that broker, which does not run yet."""
    made = Coordinator(
        tmp_path,
        MUSTER_HTTP__LISTEN=free_address(),
        MUSTER_BROKER__URL=broker.url,
        MUSTER_BROKER__USERNAME=COORDINATOR,
        MUSTER_BROKER__PASSWORD_FILE=str(passwords / COORDINATOR),
    )
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end()


def test_a_coordinator_before_and_while_it_runs(coordinator):
    """Before, it tries the broker; then it asks the coordinator."""
    found = examined("coordinator", **coordinator.settings)
    assert verdicts(found) == {
        "settings": "PASS",
        "plugins": "PASS",
        "coordinator": "WARN",
        "certificates": "PASS",
        "broker": "PASS",
        "latency": "PASS",
        "access": "PASS",
        "database": "PASS",
        "disk": "PASS",
        "actors": "PASS",
    }
    assert found["database"][1] == "there is none yet; the coordinator creates it"
    coordinator.start()
    found = examined("coordinator", **coordinator.settings)
    assert {check: found[check][0] for check in ("coordinator", "broker", "access", "database")} == {
        "coordinator": "PASS",
        "broker": "PASS",
        "access": "SKIPPED",
        "database": "PASS",
    }
    assert not any(line.get("event") == "broker_away" for line in coordinator.log)


def test_what_is_wrong_with_a_coordinator_is_said(coordinator, tmp_path):
    """A damaged database, a scheduler that is not there, a plugin that cannot be configured."""
    coordinator.start()
    coordinator.end()
    file = tmp_path / "muster.db"
    file.write_bytes(file.read_bytes()[:4096] + b"\xff" * 60_000)
    actor = {"slurm": {"actor": {"enabled": True}, "scontrol": "/nowhere/scontrol"}}
    settings = coordinator.settings | {"MUSTER_QUARANTINE": json.dumps(ENFORCED), "MUSTER_PLUGINS": json.dumps(actor)}
    found = examined("coordinator", **settings)
    assert found["database"][0] == "FAIL"
    assert "restore a backup" in found["database"][1]
    assert found["actors"][0] == "FAIL"
    file.write_bytes(b"")
    verdict, text = examined("coordinator", **settings)["database"]
    assert (verdict, "is an empty file: restore a backup" in text) == ("FAIL", True)


def test_a_database_of_a_newer_muster_is_named(coordinator, tmp_path):
    """It is not upgraded, and not changed."""
    coordinator.start()
    coordinator.end()
    with sqlite3.connect(tmp_path / "muster.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    verdict, text = examined("coordinator", **coordinator.settings)["database"]
    assert (verdict, "a newer muster wrote it (schema 9999" in text) == ("FAIL", True)


def test_a_database_at_a_server(coordinator, postgres):
    """One that is empty, one that the coordinator uses, and one that does not know the account."""
    url = postgres.new_database()
    settings = coordinator.settings
    settings["MUSTER_STORE__URL"] = url
    assert "upgrades it from schema none" in examined("coordinator", **settings)["database"][1]
    coordinator.start()
    verdict, text = examined("coordinator", **settings)["database"]
    assert (verdict, text.startswith("0.0")) == ("PASS", True)
    coordinator.end()
    verdict, text = examined("coordinator", **settings | {"MUSTER_STORE__URL": url.replace("postgres@", "nobody@")})[
        "database"
    ]
    assert (verdict, 'role "nobody" does not exist' in text) == ("FAIL", True)


def test_a_role_is_one_of_two():
    """Anything else is a wrong word on the command line."""
    done = run_muster("doctor", "broker")
    assert (done.returncode, "agent" in done.stderr) == (64, True)
