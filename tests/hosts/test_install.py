"""Ansible installs, changes, upgrades and removes a fleet on four hosts with real systemd, over real ssh.

The tests share the installed fleet, and each leaves it as it was. The last one removes it.
"""

import re
import shutil
from pathlib import Path

import pytest
from tests.debian import build_wheel, copy_checkout
from tests.hosts.fleet import HUB, NODES, ManagedFleet
from tests.waiting import wait_for

OTHER_VERSION = "0.1.99"
BROKEN_VERSION = "0.1.100"


def healths(fleet: ManagedFleet) -> dict[str, str]:
    return {name: node["health"] for name, node in fleet.nodes().items()}


def versions(fleet: ManagedFleet) -> dict[str, str]:
    return {name: node["software"]["muster"] for name, node in fleet.nodes().items()}


def test_a_fleet_is_installed(fleet):
    """From nothing: broker, coordinator and agents run and are enabled, and every node is healthy."""
    wait_for(lambda: healths(fleet) == dict.fromkeys(NODES, "HEALTHY"), "healthy nodes")
    assert all(fleet.started().values())
    assert fleet.hosts[HUB].run("systemctl is-enabled muster-coordinator mosquitto") == "enabled\nenabled"
    assert fleet.hosts[NODES[0]].run("systemctl is-enabled muster-agent") == "enabled"


def test_services_alone_can_read_secrets(fleet):
    """Keys and tokens belong to root, and the group of the services may read them."""
    for host, files in ((HUB, "tls.key api-token read-token"), (NODES[0], "tls.key muster.toml")):
        modes = fleet.hosts[host].run(f"cd /etc/muster && stat --format '%U %G %a' . {files}").splitlines()
        assert (modes[0], {*modes[1:]}) == ("root muster 750", {"root muster 640"})
    assert "api-token" not in fleet.hosts[NODES[0]].run("ls /etc/muster")


def test_doctor_finds_nothing_to_mend(fleet):
    """On a node and on the coordinator's host, as their user; these hosts do not synchronise their clocks."""
    for host, role in ((HUB, "coordinator"), (NODES[0], "agent")):
        text = (
            fleet.hosts[host]
            .call(f"runuser -u muster -- /opt/muster/bin/muster doctor {role} --config /etc/muster/muster.toml")
            .stdout
        )
        wrong = [line for line in text.splitlines() if not re.match(r"(PASS|SKIPPED) |WARN +clock: ", line)]
        assert (wrong, "certificates" in text) == ([], True)


def test_a_second_call_changes_nothing(fleet):
    """No file, and no process."""
    before = fleet.started()
    done = fleet.install()
    assert done.changed == dict.fromkeys((HUB, *NODES), 0), done.text
    assert fleet.started() == before


def commented(text: str) -> str:
    """A file that says the same in another form."""
    return f"{text}\n# of another shift\n"


def restarted(fleet: ManagedFleet, before: dict[str, str]) -> set[str]:
    """The services that were started since."""
    return {unit for unit, time in fleet.started().items() if time != before[unit]}


def test_a_changed_setting_restarts_one_agent(fleet):
    """A dry run says so, and changes nothing."""
    before = fleet.started()
    with fleet.edited(fleet.settings(NODES[1]), commented):
        told = fleet.play("install.yml", "--check")
        assert (told.code, {name for name, count in told.changed.items() if count}) == (0, {NODES[1]}), told.text
        assert restarted(fleet, before) == set()
        fleet.install()
        assert restarted(fleet, before) == {f"{NODES[1]} muster-agent"}
    fleet.install("--limit", NODES[1])


def test_a_changed_access_list_restarts_the_broker_alone(fleet):
    """The coordinator and the agents connect again."""
    before = fleet.started()
    with fleet.edited(fleet.config / "broker" / "mosquitto.acl", commented):
        fleet.install("--limit", HUB)
    assert restarted(fleet, before) == {f"{HUB} mosquitto"}
    fleet.install("--limit", HUB)
    wait_for(lambda: healths(fleet) == dict.fromkeys(NODES, "HEALTHY"), "healthy nodes")


def test_a_restart_that_was_missed_is_made_up_for(fleet):
    """An earlier call was interrupted after it had replaced a file: the process is older than the file."""
    before = fleet.started()
    fleet.hosts[NODES[2]].run("touch /etc/muster/tls.crt")
    fleet.install("--limit", NODES[2])
    assert restarted(fleet, before) == {f"{NODES[2]} muster-agent"}


def test_wrong_settings_are_refused(fleet):
    """In muster's own words; the node keeps its settings and its process, and no other node is changed."""
    before = fleet.started()
    with (
        fleet.edited(fleet.settings(NODES[0]), "[broken]\n".__add__),
        fleet.edited(fleet.settings(NODES[1]), commented),
    ):
        done = fleet.play("install.yml")
    assert (done.code, done.failed) == (2, {NODES[0]}), done.text
    assert "unknown setting 'broken'" in done.text
    assert restarted(fleet, before) == set()
    assert "broken" not in fleet.hosts[NODES[0]].run("cat /etc/muster/muster.toml")


def test_a_node_that_does_not_come_back_stops_the_others(fleet):
    """Its agent runs and finds no broker. The others are not changed, and the next call mends it."""
    before = fleet.started()
    with (
        fleet.edited(fleet.settings(NODES[0]), lambda text: text.replace(":8883", ":1")),
        fleet.edited(fleet.settings(NODES[1]), commented),
    ):
        done = fleet.play("install.yml", "-e", "muster_healthy_within_s=15")
    assert (done.code, done.failed) == (2, {NODES[0]}), done.text
    assert f"{NODES[0]} is not as healthy as before after 15 s; no other nodes are changed" in done.line
    assert restarted(fleet, before) == {f"{NODES[0]} muster-agent"}
    fleet.install("--limit", NODES[0])
    wait_for(lambda: healths(fleet) == dict.fromkeys(NODES, "HEALTHY"), "healthy nodes")


def test_a_host_that_cannot_be_reached_is_left_out(fleet):
    """It is the first one, and the others are changed all the same."""
    before = fleet.started()
    away = fleet.hosts[NODES[0]]
    away.run("systemctl stop ssh.service ssh.socket; pkill -KILL -x sshd || true")  # also the connections that are open
    try:
        with fleet.edited(fleet.settings(NODES[1]), commented):
            done = fleet.play("install.yml")
    finally:
        away.run("systemctl start ssh.service")
    assert (done.code, done.unreachable, done.failed) == (4, {NODES[0]}, set()), done.text
    assert restarted(fleet, before) == {f"{NODES[1]} muster-agent"}
    fleet.install("--limit", NODES[1])


@pytest.fixture
def other_wheels(packages, tmp_path):
    """Makes a directory of wheels with another version of muster, in which a file may have another content."""

    def make(version: str, changed: dict[str, str] | None = None) -> Path:
        source = copy_checkout(tmp_path / f"source-{version}")
        project = source / "pyproject.toml"
        project.write_text(
            re.sub(r'^version = ".*"', f'version = "{version}"', project.read_text(), flags=re.MULTILINE)
        )
        for path, content in (changed or {}).items():
            (source / path).write_text(content)
        directory: Path = tmp_path / f"wheels-{version}"
        shutil.copytree(packages, directory)
        build_wheel(source, directory)
        return directory

    return make


def test_an_upgrade_goes_from_node_to_node(fleet, wheels, other_wheels):
    """The coordinator first. Packages that are no longer used are removed, and the way back is the same."""
    was = versions(fleet)
    for directory, version in ((other_wheels(OTHER_VERSION), OTHER_VERSION), (wheels, was[NODES[0]])):
        before = fleet.started()
        fleet.use(directory)
        fleet.install()
        assert versions(fleet) == dict.fromkeys(NODES, version)
        assert healths(fleet) == dict.fromkeys(NODES, "HEALTHY")
        services = [f"{HUB} muster-coordinator", *(f"{node} muster-agent" for node in NODES)]
        assert restarted(fleet, before) == {*services}
        now = fleet.started()
        assert sorted(services, key=now.__getitem__) == services
        assert fleet.hosts[NODES[0]].run("ls /opt/muster-venvs | wc -l") == "1"


def test_a_broken_version_stops_at_the_first_node(fleet, wheels, other_wheels):
    """Its agent does not start. All other nodes keep their version, and the earlier wheels mend the one."""
    before = fleet.started()
    fleet.use(other_wheels(BROKEN_VERSION, {"agent/muster_agent/daemon.py": "raise SystemExit('broken')\n"}))
    done = fleet.play("install.yml")
    assert (done.code, done.failed) == (2, {NODES[0]}), done.text
    others = {f"{node} muster-agent" for node in NODES[1:]}
    assert restarted(fleet, before) & others == set()
    fleet.use(wheels)
    fleet.install()
    assert restarted(fleet, before) & others == set()
    wait_for(lambda: healths(fleet) == dict.fromkeys(NODES, "HEALTHY"), "healthy nodes")


def test_what_is_wrong_is_refused_before_anything_changes(fleet, packages, wheels, tmp_path):
    """No wheel or two, a node without files, no Python: one sentence that says what to do, and not one change."""
    two = tmp_path / "two"
    shutil.copytree(wheels, two)
    (two / "gpu_muster-0.0.1-py3-none-any.whl").touch()
    key = fleet.config / "nodes" / NODES[1] / "tls.key"
    before = fleet.started()
    for arguments, words in (
        (("-e", f"muster_wheels={packages}"), "has 0 wheels gpu_muster-*.whl; put one there"),
        (("-e", f"muster_wheels={two}"), "has 2 wheels gpu_muster-*.whl; put one there"),
        (("-e", "muster_python=python2"), "python2 is missing on gpu-01, is older than 3.11, or has no venv"),
    ):
        done = fleet.play("install.yml", "--limit", NODES[0], *arguments)
        assert (done.code, done.changed, words in done.line) == (2, {NODES[0]: 0}, True), done.text
    content = key.read_bytes()
    key.unlink()
    done = fleet.play("install.yml", "--limit", f"{NODES[1]},{NODES[2]}")
    key.write_bytes(content)
    assert (done.failed, done.changed) == ({NODES[1]}, dict.fromkeys(NODES[1:], 0)), done.text
    assert f"write the files of this host with `muster init --nodes {NODES[1]}`" in done.line
    assert restarted(fleet, before) == set()


def test_nodes_are_not_changed_while_nobody_watches(fleet):
    """The coordinator does not answer: it would not see what becomes of them."""
    fleet.hosts[HUB].run("systemctl stop muster-coordinator")
    try:
        with fleet.edited(fleet.settings(NODES[0]), commented):
            done = fleet.play("install.yml", "--limit", NODES[0])
    finally:
        fleet.hosts[HUB].run("systemctl start muster-coordinator")
    assert (done.code, done.failed, done.changed) == (2, {NODES[0]}, {NODES[0]: 0}), done.text
    assert f"the coordinator on {HUB} does not answer" in done.line


LEFT = "ls -d /opt/muster* /etc/muster* /etc/systemd/system/muster* /etc/mosquitto/muster /var/lib/muster 2>/dev/null"


def test_a_node_that_has_left_is_refused(fleet):
    """Once it is revoked, by the broker, which restarts alone. With a new certificate the node is back."""
    node, settings, before = NODES[2], fleet.settings(NODES[2]).read_text(), fleet.started()
    fleet.init("--revoke", node)
    fleet.install("--limit", HUB)
    assert restarted(fleet, before) == {f"{HUB} mosquitto"}
    refused = "journalctl --unit muster-agent | grep 'certificate revoked'"
    wait_for(lambda: fleet.hosts[node].call(refused).returncode == 0, "the broker's reason in the log of the node")

    fleet.init("--nodes", node)
    fleet.settings(node).write_text(settings)
    fleet.install()
    wait_for(lambda: healths(fleet) == dict.fromkeys(NODES, "HEALTHY"), "healthy nodes")


def test_muster_is_removed(fleet):
    """From one node, which keeps its reports and comes back; then from all hosts with all that they have kept."""
    done = fleet.play("uninstall.yml", "--limit", NODES[0])
    assert (done.code, set(done.changed)) == (0, {NODES[0]}), done.text
    assert fleet.hosts[NODES[0]].call(LEFT).stdout == "/var/lib/muster\n"
    assert [bool(time) for unit, time in fleet.started().items() if unit.startswith("gpu")] == [False, True, True]
    fleet.install()
    wait_for(lambda: healths(fleet) == dict.fromkeys(NODES, "HEALTHY"), "healthy nodes")

    done = fleet.play("uninstall.yml", "-e", "muster_purge=true")
    assert done.code == 0, done.text
    again = fleet.play("uninstall.yml", "-e", "muster_purge=true")
    assert again.changed == dict.fromkeys((HUB, *NODES), 0), again.text
    for host in (HUB, *NODES):
        assert fleet.hosts[host].call(LEFT).stdout == ""
        assert fleet.hosts[host].call("getent passwd muster").stdout == ""
    assert {unit for unit, time in fleet.started().items() if time} == {f"{HUB} mosquitto"}
