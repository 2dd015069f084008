"""Two versions of muster in one fleet that reports all the time: upgraded, and rolled back.

The older version is an earlier commit of this repository, whose database has an older schema.
"""

import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.faults.fleet import NOTHING_ELSE
from tests.faults.parts import Part
from tests.muster_process import run_muster
from tests.waiting import wait_for

from muster.client import Client
from muster.errors import EX_UNAVAILABLE
from muster.local_token import find_token
from muster_coordinator.local.processes import environment

ROOT = Path(__file__).parent.parent.parent
OLDER = "966a6b3ea1459bcaa35bc421d9b241a258a63089"
"""The commit that stands for the older version. After a release, take the release before."""

OLDER_SCHEMA = "0008"
NEWER: Path | None = None
"""In the place of a directory with an older version: what is installed."""

OF_THIS_HOST = ("fabric", "host", "kernel_log", "nvml", "storage")


@pytest.fixture(scope="module")
def older(live, tmp_path_factory):
    """A directory with the older version, built as a wheel from its commit."""
    directory = tmp_path_factory.mktemp("older")
    source, site = directory / "source", directory / "site"
    if git("rev-parse", "--is-shallow-repository").stdout != b"false\n":
        pytest.skip("there is no history here to build the older version from: git fetch --unshallow")
    archive = git("archive", "--format=tar", OLDER)
    assert archive.returncode == 0, archive.stderr
    source.mkdir()
    subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", directory]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    schemas = sorted(path.name[:4] for path in (site / "muster_coordinator/store/migrations/versions").glob("0*.py"))
    assert schemas[-1] == OLDER_SCHEMA
    return site


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)


class Program(Part):
    """A part of the fleet that can be started in one version or the other."""

    def start_as(self, version: Path | None) -> None:
        """Starts it in a version; the one that is running is stopped first."""
        if self.runs:
            self.stop()
        if version is NEWER:
            self.start()
            return
        env = environment(self.settings | {"log": {"format": "json"}})
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "muster", self.command], env=env | {"PYTHONPATH": str(version)}, stderr=log
            )


class MixedFleet:
    """A broker, a coordinator and two agents that run a check ten times a second."""

    def __init__(self, directory: Path, broker: str) -> None:
        self.data = directory / "coordinator"
        self._coordinator_settings = {"data_dir": str(self.data), "broker": {"url": broker}}
        self.coordinator = Program(
            "coordinator",
            directory / "coordinator.log",
            self._coordinator_settings | {"http": {"listen": "127.0.0.1:0"}},
            {},
        )
        self.agents = {
            node: Program(
                "agent",
                directory / f"{node}.log",
                {
                    "node": node,
                    "data_dir": str(directory / node),
                    "broker": {"url": broker},
                    "agent": {"listen": "127.0.0.1:0", "spread_s": 0},
                    "checks": {"simulated": {"interval_s": 0.1}} | NOTHING_ELSE,
                    "plugins": {"disabled": OF_THIS_HOST, "simulated": {"enabled": True, "devices": 1}},
                },
                {},
            )
            for node in ("n1", "n2")
        }

    def start_coordinator(self, version: Path | None) -> None:
        self.coordinator.start_as(version)
        url = self.coordinator.logged("coordinator_ready")["api"]
        self.coordinator.settings["http"] = {"listen": urlsplit(url).netloc}
        self.api = Client(url, find_token(self.data, url))

    def start_agents(self, version: Path | None) -> None:
        for agent in self.agents.values():
            agent.start_as(version)
            agent.logged("broker_connected")

    def numbers(self, node: str) -> list[int]:
        """The sequence numbers of the node's runs that the coordinator has stored."""
        return sorted(run["seq"] for run in self.api.pages("runs", node=node)["items"])

    def newest(self, node: str, count: int) -> list[str]:
        """The ids of the node's newest runs that the coordinator has stored."""
        return [run["id"] for run in self.api.get("runs", node=node, limit=count)["items"]]

    def wait_for_more(self, count: int = 10) -> None:
        """Returns when each node has had this many more runs stored than now."""
        for node, before in {node: self.newest(node, 1) for node in self.agents}.items():
            wait_for(partial(self.has_more, node, count, before), f"runs of {node}")

    def has_more(self, node: str, count: int, before: list[str]) -> bool:
        """Whether this many runs of the node are newer than those before."""
        newest = self.newest(node, count)
        return len(newest) == count and not {*before} & {*newest}

    def assert_nothing_lost(self) -> None:
        """Every run of every node is stored, and once."""
        for node in self.agents:
            numbers = self.numbers(node)
            assert numbers == list(range(1, len(numbers) + 1))

    def end(self) -> None:
        for part in (self.coordinator, *self.agents.values()):
            if part.runs:
                part.kill()


@pytest.fixture
def fleet(tmp_path, mosquitto):
    """A fleet of which nothing runs yet."""
    fleet = MixedFleet(tmp_path, mosquitto.url)
    yield fleet
    fleet.end()


def test_the_coordinator_is_upgraded_first(fleet, older):
    """As the guide says: its database is migrated, older agents go on, and every run arrives once."""
    fleet.start_coordinator(older)
    fleet.start_agents(older)
    fleet.wait_for_more()
    fleet.start_coordinator(NEWER)
    fleet.wait_for_more()
    fleet.start_agents(NEWER)
    fleet.wait_for_more()
    fleet.assert_nothing_lost()


def test_agents_are_upgraded_first(fleet, older):
    """Newer agents report to an older coordinator, and go back to their older version with what they had not sent."""
    fleet.start_coordinator(older)
    fleet.start_agents(NEWER)
    fleet.wait_for_more()
    fleet.start_agents(older)
    fleet.wait_for_more()
    fleet.assert_nothing_lost()


def test_a_coordinator_is_rolled_back_with_a_backup(fleet, older, tmp_path):
    """The older one refuses the migrated database and leaves it as it is. It starts from the backup before."""
    fleet.start_coordinator(older)
    fleet.start_agents(older)
    fleet.wait_for_more()
    backup = tmp_path / "muster.db"
    done = run_muster("store", "backup", str(backup), env=environment(fleet.coordinator.settings))
    assert done.returncode == 0, done.stderr
    fleet.start_coordinator(NEWER)
    fleet.wait_for_more()

    fleet.coordinator.start_as(older)
    wait_for(lambda: fleet.coordinator.exit_code is not None, "the older coordinator to end")
    assert fleet.coordinator.exit_code == EX_UNAVAILABLE
    assert "written by a newer muster" in fleet.coordinator.text()

    for file in fleet.data.glob("muster.db*"):
        file.unlink()
    shutil.copy(backup, fleet.data / "muster.db")
    fleet.start_coordinator(older)
    fleet.wait_for_more()
