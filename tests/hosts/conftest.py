"""A fleet on real hosts: `make hosts`.

Each host is a set of namespaces in which systemd is the first process, on a file system made with debootstrap. It has
sshd, Mosquitto and Python, and no way to the internet. The file system and the wheels are kept in .cache/hosts.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.debian import ROOT, build_wheel, debootstrap, path, pinned_wheels, release, run
from tests.hosts.fleet import HUB, NODES, ManagedFleet
from tests.hosts.machines import Hosts, booted

CACHE = ROOT / ".cache" / "hosts"
PACKAGES = ("systemd-sysv", "dbus", "openssh-server", "python3-venv", "mosquitto", "procps", "sudo")


@pytest.fixture(scope="session", autouse=True)
def programs(live: None) -> None:
    """These tests fail without what they need: they are run on purpose."""
    assert os.getuid() == 0, "run `make hosts` as root: it makes file systems and boots hosts without an engine"
    missing = [name for name in ("debootstrap", "ssh") if shutil.which(name, path=path()) is None]
    assert not missing, f"{' and '.join(missing)} missing: .ci/system-packages hosts"


@pytest.fixture(scope="session")
def base() -> Path:
    """The file system of every host before anything is installed."""
    system = CACHE / release()
    if not system.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            debootstrap(Path(scratch) / "system", *PACKAGES)
            (Path(scratch) / "system").rename(system)
    return system


@pytest.fixture(scope="session")
def packages(base: Path) -> Path:
    """The wheels that muster needs on the hosts."""
    (python,) = (base / "usr/bin").glob("python3.?*[0-9]")
    return pinned_wheels(CACHE, python.name.removeprefix("python"), "agent,coordinator")


@pytest.fixture(scope="session")
def wheels(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the wheel of this checkout: what the operator has put together."""
    directory = tmp_path_factory.mktemp("wheels")
    shutil.copytree(packages, directory, dirs_exist_ok=True)
    build_wheel(ROOT, directory)
    return directory


@pytest.fixture(scope="session")
def hosts(base: Path, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    addresses = {name: f"10.7.0.{number}" for number, name in enumerate((HUB, *NODES), 1)}
    with booted(base, tmp_path_factory.mktemp("hosts"), key.with_suffix(".pub").read_text(), addresses) as running:
        yield running


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's key for ssh."""
    file = tmp_path_factory.mktemp("ssh") / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file)
    return file


@pytest.fixture(scope="session")
def fleet(hosts: Hosts, base: Path, key: Path, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> ManagedFleet:
    """The fleet after the first installation, on hosts that had nothing of muster."""
    host_key = (base / "etc/ssh/ssh_host_ed25519_key.pub").read_text()
    fleet = ManagedFleet(tmp_path_factory.mktemp("operator"), hosts, key, host_key)
    fleet.use(wheels)
    fleet.install()
    return fleet
