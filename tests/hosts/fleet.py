"""The fleet that the tests install with Ansible, as its operator has it: the directory of `muster init`, and wheels."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hosts.machines import OPERATOR, Hosts
from tests.muster_process import run_muster

from muster.toml import to_toml

HUB = "hub.example"
NODES = ("gpu-01", "gpu-02", "gpu-03")

SIMULATED: dict[str, Any] = {
    "agent": {"spread_s": 1},
    "plugins": {"simulated": {"enabled": True, "devices": 1}, "disabled": ["nvml", "host", "fabric", "kernel_log"]},
    "checks": {check: {"enabled": False} for check in ("storage", "gemm", "memory", "training")},
}
"""What the operator has added to the settings of nodes: these hosts have no GPUs."""

VARIABLES = """\
ansible_user: {operator}
ansible_ssh_private_key_file: {key}
ansible_ssh_common_args: -o UserKnownHostsFile={known_hosts}
muster_wheels: {wheels}
muster_agent_extras: agent
muster_healthy_within_s: 60
"""

RECAP = re.compile(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=(\d) +failed=(\d)", re.MULTILINE)


@dataclass(frozen=True)
class Played:
    """How a playbook ended: its exit code, what it printed, and how many tasks have changed something on each host."""

    code: int
    text: str = field(repr=False)
    changed: dict[str, int]
    unreachable: set[str]
    failed: set[str]

    @property
    def line(self) -> str:
        """What it printed, in one line: Ansible breaks lines."""
        return " ".join(self.text.split())


class ManagedFleet:
    """The hosts and the directory of `muster init` with which Ansible manages them."""

    def __init__(self, directory: Path, hosts: Hosts, key: Path, host_key: str) -> None:
        self.hosts = hosts
        self.config = directory / "muster-config"
        self._variables = self.config / "ansible" / "inventory" / "group_vars" / "all.yml"
        known_hosts = directory / "known_hosts"
        known_hosts.write_text(f"* {host_key}")
        self._values = {"operator": OPERATOR, "key": key, "known_hosts": known_hosts}
        self.init("systemd", "--host", HUB, "--nodes", ",".join(NODES))
        for node in NODES:
            with self.settings(node).open("a") as file:
                file.write(f"\n{to_toml(SIMULATED)}\n")
        for host in hosts.by_name.values():
            variables = self.config / "ansible" / "inventory" / "host_vars" / f"{host.name}.yml"
            variables.parent.mkdir(exist_ok=True)
            variables.write_text(f"ansible_host: {host.address}\n")

    def init(self, *arguments: str) -> None:
        """Calls `muster init` for the directory."""
        done = run_muster("init", *arguments, "--directory", str(self.config))
        assert done.returncode == 0, done.stderr

    def settings(self, node: str) -> Path:
        return self.config / "nodes" / node / "muster.toml"

    def use(self, wheels: Path) -> None:
        """Has the wheels in this directory installed from now on."""
        self._variables.parent.mkdir(exist_ok=True)
        self._variables.write_text(VARIABLES.format(wheels=wheels, **self._values))

    def play(self, playbook: str, *arguments: str) -> Played:
        """Runs a playbook in its directory, as the guide says."""
        program = Path(sys.executable).with_name("ansible-playbook")
        done = subprocess.run(
            [*self.hosts.network.enter, program, playbook, *arguments],
            cwd=self.config / "ansible",
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"ANSIBLE_HOME": str(self.config.parent / "ansible-home"), "LC_ALL": "C.UTF-8"},
        )
        rows = RECAP.findall(done.stdout)
        return Played(
            done.returncode,
            done.stdout + done.stderr,
            {name: int(changed) for name, changed, _, _ in rows},
            {name for name, _, unreachable, _ in rows if unreachable != "0"},
            {name for name, _, _, failed in rows if failed != "0"},
        )

    def install(self, *arguments: str) -> Played:
        """Runs the playbook that installs; AssertionError if it fails."""
        done = self.play("install.yml", *arguments)
        assert done.code == 0, done.text
        return done

    def nodes(self) -> dict[str, dict[str, Any]]:
        """What the coordinator knows about each node."""
        text = self.hosts[HUB].run("/opt/muster/bin/muster node list --json --config /etc/muster/muster.toml")
        return {item["name"]: item for item in json.loads(text)["items"]}

    def started(self) -> dict[str, str]:
        """When each service on each host was started."""
        units = {HUB: ("mosquitto", "muster-coordinator"), **dict.fromkeys(NODES, ("muster-agent",))}
        return {f"{host} {unit}": self.hosts[host].started(unit) for host, names in units.items() for unit in names}

    @contextmanager
    def edited(self, file: Path, edit: Callable[[str], str]) -> Iterator[None]:
        """The file has another text while the context lasts."""
        before = file.read_text()
        file.write_text(edit(before))
        try:
            yield
        finally:
            file.write_text(before)
