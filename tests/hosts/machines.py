"""Hosts with systemd, sshd and a network between them, on this machine: no container engine, no virtual machine."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.debian import path, run
from tests.network.namespaces import Namespace, new_namespace
from tests.waiting import wait_for

BOOT = Path(__file__).with_name("boot")

OPERATOR = "admin"
"""Who manages the hosts, and may become root. Root's files are for root alone, as on hardened hosts."""

ADD_OPERATOR = f"""set -e
useradd --create-home {OPERATOR}
echo '{OPERATOR} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/{OPERATOR}
echo 'Defaults umask=0077, umask_override' >>/etc/sudoers.d/{OPERATOR}
install --directory --mode 0700 --owner {OPERATOR} /home/{OPERATOR}/.ssh
echo '%s' >/home/{OPERATOR}/.ssh/authorized_keys
"""


class Host:
    """A host that has booted, with `pid` as its first process."""

    def __init__(self, name: str, address: str, pid: int) -> None:
        self.name = name
        self.address = address
        self.network = Namespace(pid, has_users=False)
        self._enter = ["nsenter", f"--target={pid}", "--all", "env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]

    def call(self, command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command line as root to its end."""
        return subprocess.run([*self._enter, "sh", "-c", command], capture_output=True, text=True, check=False)

    def run(self, command: str) -> str:
        """What a command that succeeds prints."""
        done = self.call(command)
        assert done.returncode == 0, f"{self.name}: {command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def is_reachable(self) -> bool:
        """Whether its sshd runs, and users may log in."""
        return self.call("systemctl is-active ssh && systemctl is-active multi-user.target").returncode == 0

    def started(self, unit: str) -> str:
        """When the process of a service was started; empty if it does not run."""
        is_active = self.call(f"systemctl is-active {unit}").returncode == 0
        text = self.run(f"systemctl show --timestamp=us+utc --property=ExecMainStartTimestamp --value {unit}")
        return text if is_active else ""


@dataclass(frozen=True)
class Hosts:
    """Hosts by their names, and the network from which they are managed."""

    network: Namespace
    by_name: dict[str, Host]

    def __getitem__(self, name: str) -> Host:
        return self.by_name[name]


@contextmanager
def booted(base: Path, directory: Path, key: str, addresses: dict[str, str]) -> Iterator[Hosts]:
    """Hosts with the file system `base`, on which the operator may log in with the public key.

    The managing end of their network has the address that ends with 254.
    """
    with ExitStack() as stack:
        network = stack.enter_context(new_namespace())
        first = next(iter(addresses.values()))
        network.ip(
            "link set lo up",
            "link add bridge type bridge",
            f"address add {first.rpartition('.')[0]}.254/24 dev bridge",
            "link set bridge up",
        )
        hosts = {}
        for number, (name, address) in enumerate(addresses.items()):
            changes = directory / name
            _name_all(changes / "files", addresses)
            pid = stack.enter_context(_booted(base, changes, name))
            hosts[name] = Host(name, address, pid)
            network.ip(
                f"link add host{number} type veth peer name eth0 netns {pid}", f"link set host{number} master bridge up"
            )
            hosts[name].network.ip(f"address add {address}/24 dev eth0", "link set eth0 up")
        for host in hosts.values():
            wait_for(host.is_reachable, f"sshd of {host.name}")
            host.run(ADD_OPERATOR % key.strip())
        yield Hosts(network, hosts)


def _name_all(files: Path, addresses: dict[str, str]) -> None:
    """Writes the names of all hosts, in which a host differs from the base."""
    (files / "etc").mkdir(parents=True)
    names = {"localhost": "127.0.0.1", **addresses}
    (files / "etc/hosts").write_text("".join(f"{address} {name}\n" for name, address in names.items()))


@contextmanager
def _booted(base: Path, changes: Path, name: str) -> Iterator[int]:
    """The id of the first process of a host, while the context lasts."""
    log = changes / "console.log"
    with _new_cgroup() as cgroup, log.open("w") as console:
        boot = subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", BOOT, name, base, changes, cgroup],
            stdout=console,
            stderr=subprocess.STDOUT,
            env={"PATH": path()},
        )
        try:
            yield wait_for(lambda: _systemd(boot, log), f"systemd of {name}")
        finally:
            boot.kill()
            boot.wait()


@contextmanager
def _new_cgroup() -> Iterator[Path]:
    """A cgroup for the processes of a host, which no other process of this machine is in."""
    root = run("findmnt", "--noheadings", "--first-only", "--types=cgroup2", "--output=TARGET").strip()
    cgroup = Path(tempfile.mkdtemp(prefix="muster-", dir=root))
    try:
        yield cgroup
    finally:
        wait_for(lambda: _is_removed(cgroup), f"the end of all processes in {cgroup}")


def _is_removed(cgroup: Path) -> bool:
    """Removes a cgroup with all below it; False while a process in it still ends."""
    try:
        for inner in sorted(cgroup.rglob("*/"), reverse=True):
            inner.rmdir()
        cgroup.rmdir()
    except OSError:
        return False
    return True


def _systemd(boot: subprocess.Popen[bytes], log: Path) -> int | None:
    """The child of the booting process, once it is systemd."""
    assert boot.poll() is None, log.read_text()
    children = Path(f"/proc/{boot.pid}/task/{boot.pid}/children").read_text().split()
    is_there = children and Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd"
    return int(children[0]) if is_there else None
