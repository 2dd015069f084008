"""The playbooks as `muster init` writes them: Ansible reads them, and they name what is there.

`make hosts` runs them.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.muster_process import run_muster

PLAYBOOKS = ("install.yml", "uninstall.yml")

pytestmark = pytest.mark.usefixtures("live")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The directory of a fleet of three nodes."""
    directory: Path = tmp_path_factory.mktemp("fleet") / "muster-config"
    done = run_muster("init", "systemd", "--host", "hub.example", "--nodes", "n[1-3]", "--directory", str(directory))
    assert done.returncode == 0, done.stderr
    return directory


def ansible(written: Path, program: str, *arguments: str) -> str:
    """What a program of Ansible prints in the directory of the playbooks; AssertionError if it fails or warns."""
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        cwd=written / "ansible",
        env=os.environ | {"ANSIBLE_HOME": str(written.parent / "home"), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def tasks(written: Path, name: str) -> list[dict[str, Any]]:
    """The tasks in a file of the role, those in blocks too."""
    flat: list[dict[str, Any]] = []
    waiting = yaml.safe_load((written / "ansible/roles/muster/tasks" / f"{name}.yml").read_text())
    while waiting:
        task = waiting.pop(0)
        waiting = [*task.get("block", ()), *waiting]
        flat.append(task)
    return flat


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_ansible_reads_the_playbooks(written, playbook):
    """Each task is one that it knows, with options that it has."""
    assert "muster : " in ansible(written, "ansible-playbook", playbook, "--list-tasks")


def test_the_inventory_has_all_hosts(written):
    """In the two groups that the playbooks name. A later call adds nodes and leaves what the operator has added."""
    variables = written / "ansible" / "inventory" / "group_vars" / "all.yml"
    variables.parent.mkdir()
    variables.write_text("ansible_user: admin\n")
    done = run_muster("init", "--nodes", "n4", "--directory", str(written))
    assert (done.returncode, variables.read_text()) == (0, "ansible_user: admin\n")
    found = json.loads(ansible(written, "ansible-inventory", "--list"))
    assert found["muster_coordinator"]["hosts"] == ["hub.example"]
    assert found["muster_nodes"]["hosts"] == ["n1", "n2", "n3", "n4"]
    assert found["_meta"]["hostvars"]["n4"]["ansible_user"] == "admin"


def test_what_is_copied_is_what_was_written(written):
    """Every file or directory of `muster init` that a task names, and every file of the service directories."""
    text = "".join(path.read_text() for path in (written / "ansible/roles/muster/tasks").glob("*.yml"))
    named = set(re.findall(r"\{\{ muster_config \}\}/([\w./-]+[\w])\"", text))
    assert named == {"broker/muster.conf"}
    units = re.findall(r"\{\{ muster_config \}\}/(systemd/muster-)\{\{ muster_part \}\}(\.service)", text)
    assert units
    places = [*named, *(f"{before}{part}{after}" for before, after in units for part in ("agent", "coordinator"))]
    places += [f"systemd/{folder}/muster.conf" for folder in ("sysusers.d", "tmpfiles.d")]
    assert [place for place in places if not (written / place).is_file()] == []


def test_units_start_what_is_installed(written):
    """They name the program where the role puts it, and the settings where it copies them."""
    files = [task["ansible.builtin.file"] for task in tasks(written, "service") if "ansible.builtin.file" in task]
    (link,) = [options for options in files if options["state"] == "link"]
    for unit in (written / "systemd").glob("*.service"):
        assert f"ExecStart={link['dest']}/bin/muster " in unit.read_text()
        assert "--config /etc/muster/muster.toml\n" in unit.read_text()


def test_everything_that_is_installed_is_removed(written):
    """Each place that a task of the installation writes is below one that the removal deletes."""
    removed = {
        str(place)
        for name in ("uninstall", "uninstall_broker")
        for task in tasks(written, name)
        for place in task.get("loop", ())
    }
    placed = {
        str(options[key])
        for name in ("service", "broker")
        for task in tasks(written, name)
        for module, key in (("ansible.builtin.copy", "dest"), ("ansible.builtin.file", "path"))
        if key in (options := task.get(module, {}))
    }
    one_by_one = {f"/usr/lib/{folder}/muster.conf" for folder in ("sysusers.d", "tmpfiles.d")}
    places = (placed - {"/usr/lib/{{ item }}/muster.conf", "{{ item.path }}"}) | one_by_one
    left = [place for place in places if not any((place + "/").startswith(gone + "/") for gone in removed)]
    assert (len(places) > 6, left) == (True, [])
