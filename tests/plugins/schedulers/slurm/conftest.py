"""A real Slurm cluster on this host: munged, slurmctld and a slurmd for each node, on free ports and in a directory.

All of them are children of the tests and end with them, even when these are killed. Nodes differ in their names only,
so what runs on a node tells them apart by SLURMD_NODENAME.
"""

import contextlib
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import pytest
from benchmarks.free_ports import free_port
from tests.waiting import PATIENCE_S, wait_for

NODES = ("gpu1", "gpu2")
DEVICES = 2
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
EXAMPLES = Path(__file__).parents[4] / "docs" / "examples" / "slurm"

SLURM_CONF = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={munge}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/%n.log
# Neither cgroups nor systemd are needed.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
# Nodes have what is said here, whatever this host has.
SlurmdParameters=config_overrides
GresTypes=gpu
# Decide at once.
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=2
MpiDefault=none
ReturnToService=1
RebootProgram=/bin/true
# The port of a job's steps follows from its id, and may not be the same in two clusters on this host.
FirstJobId={first_job}
{settings}
{nodes}
PartitionName=main Nodes=ALL Default=YES
"""

SETTINGS = """
[plugins]
disabled = ["nvml", "kernel_log", "host", "fabric", "storage", "dcgm", "nccl_tests", "script", "memory"]

[plugins.simulated]
enabled = true
devices = {devices}

[suites.prolog]
steps = [{{ section = "ENV", check = "simulated" }}]

[suites.full]
steps = [
    {{ section = "ENV", check = "simulated" }},
    {{ section = "COLLECTIVE", check = "collective", quick = true, params = {{ size_bytes = 65536 }} }},
]

[suites.preflight]
steps = [{{ section = "ENV", check = "simulated" }}]
"""

MUSTER = """#!/bin/sh
# muster as each node has it: with a name, settings and faults of its own.
directory='{directory}'
export MUSTER_NODE="$SLURMD_NODENAME" MUSTER_CONFIG="$directory/muster.toml"
faults="$directory/$SLURMD_NODENAME.faults"
[ -e "$faults" ] && MUSTER_PLUGINS__SIMULATED__FAULTS=$(cat "$faults") && export MUSTER_PLUGINS__SIMULATED__FAULTS
exec '{python}' -m muster "$@"
"""


def program(name: str) -> str:
    """Where a program of Slurm is; Debian keeps its daemons out of users' PATH."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    assert found, f"{name} is missing, these tests need Slurm: apt-get install slurmctld slurmd slurm-client munge"
    return found


BOOT_S = 3.0
"""A message that is late by less than this is never taken for another boot."""

JOBS_OF_A_CLUSTER = 97
"""So many ids at least are between those of two clusters, whose ports differ by one or more."""


class Slurm:
    """The cluster while it runs. `settings` are further lines of slurm.conf, which may name its `{directory}`.

    `env` is what Slurm's programs need to find it, `muster` a program that is muster on whatever node runs it, and
    `settings` its settings. No name service knows the nodes, so MASTER_ADDR says where the first one is.
    """

    def __init__(self, directory: Path, settings: str) -> None:
        self.directory = directory
        self.muster = directory / "muster"
        self.settings = directory / "muster.toml"
        self._munge = directory / "munge.socket"
        self.env = {**os.environ, "SLURM_CONF": str(directory / "slurm.conf"), "MASTER_ADDR": "127.0.0.1"}
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._write_files(settings)

    def __enter__(self) -> "Slurm":
        munge = [f"--{kind}-file={self.directory / f'munge.{kind}'}" for kind in ("key", "pid", "log", "seed")]
        self._start("munged", "--foreground", "--force", "--num-threads=10", f"--socket={self._munge}", *munge)
        wait_for(self._munge.exists, "munged")
        self.start_slurmctld()
        self._slurmds = {node: self._start("slurmd", "-D", "-N", node) for node in NODES}
        wait_for(lambda: {self.node(node).get("State") for node in NODES} == {"IDLE"}, "idle nodes")
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()
        for orphan in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                orphan.kill()

    def start_slurmctld(self) -> None:
        """Starts it with the state that an earlier one has left."""
        self._start("slurmctld", "-D", "-i")

    def stop_slurmctld(self) -> None:
        """Has it save its state and end."""
        slurmctld = self._slurmctld()
        self._daemons.remove(slurmctld)
        slurmctld.terminate()
        slurmctld.wait(PATIENCE_S)

    def boot(self, node: str) -> None:
        """Ends the slurmd of a node, and starts one that says that the node has been booted.

        slurmctld hears of it some seconds later, as of a real host. It reckons the time of the boot again from each
        message, in whole seconds; one that is by a second later than what it heard first would be another boot.
        """
        before = self._slurmds[node]
        before.kill()
        before.wait()
        self._daemons.remove(before)
        started = self.directory / f"{node}.pid"
        started.unlink()
        self._slurmctld().send_signal(signal.SIGSTOP)
        self._slurmds[node] = self._start("slurmd", "-D", "-b", "-N", node)
        wait_for(started.exists, f"slurmd of {node}")
        time.sleep(BOOT_S)
        self._slurmctld().send_signal(signal.SIGCONT)

    def run(self, name: str, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of Slurm to its end."""
        command = [program(name), *map(str, arguments)]
        return subprocess.run(
            command, env=self.env | env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def srun(self, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run("srun", *arguments, **env)

    def scontrol(self, *arguments: object) -> str:
        """What it prints."""
        done = self.run("scontrol", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sbatch(self, *arguments: object, **env: str) -> str:
        """The id of the job; what it prints goes to the directory of these daemons unless the arguments say where."""
        done = self.run("sbatch", "--parsable", f"--chdir={self.directory}", *arguments, **env)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def node(self, name: str) -> dict[str, str]:
        """What Slurm says about a node, such as State and Reason; nothing while it does not answer."""
        return fields(self.run("scontrol", "--oneliner", "show", "node", name).stdout)

    def job(self, id: str) -> dict[str, str]:
        """What Slurm says about a job, such as JobState, ExitCode and NodeList."""
        return fields(self.scontrol("--oneliner", "show", "job", id))

    def ended(self, id: str) -> dict[str, str]:
        """The job, once it has ended."""
        return wait_for(lambda: job if (job := self.job(id))["JobState"] in ENDED else None, f"the end of job {id}")

    def tasks(self) -> list[psutil.Process]:
        """Every process of muster that runs on the nodes."""
        return [process for process in self.processes() if "muster" in process.cmdline()]

    def put_fault(self, node: str, **fault: str) -> None:
        """Puts a fault under the simulated devices of a node, in place of any other."""
        self._faults(node).write_text(json.dumps([fault]))

    def mend(self, node: str) -> None:
        """Takes the fault away again."""
        self._faults(node).unlink(missing_ok=True)

    def example(self, name: str, **changed: str) -> Path:
        """A script of docs/examples/slurm as somebody installs it who changes some of the assignments at its top."""
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        ours = {"muster": self.muster, "settings": self.settings} if "\nmuster=" in text else {}
        for variable, value in {**ours, **changed}.items():
            text, found = re.subn(f"^{variable}=.*", f"{variable}={value}", text, flags=re.MULTILINE)
            assert found == 1, f"{name} sets {variable} {found} times"
        return self._write(name, text, mode=0o755)

    def processes(self) -> list[psutil.Process]:
        """Every process that belongs to the cluster: daemons, steps and their tasks."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _slurmctld(self) -> subprocess.Popen[bytes]:
        return next(daemon for daemon in self._daemons if "slurmctld" in str(daemon.args))

    def _owns(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return any(f"{self.directory}/" in text for text in (*process.cmdline(), *process.environ().values()))
        return False

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts a daemon that is killed when whoever started it dies."""
        command = ["setpriv", "--pdeathsig", "KILL", program(name), *arguments]
        with (self.directory / f"{name}.out").open("ab") as out:
            daemon = subprocess.Popen(command, env=self.env, stdout=out, stderr=subprocess.STDOUT)
        self._daemons.append(daemon)
        return daemon

    def _write_files(self, settings: str) -> None:
        host = socket.gethostname().split(".")[0]
        ports = [free_port() for _ in range(len(NODES) + 1)]
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 Gres=gpu:{DEVICES}"
            for node, port in zip(NODES, ports[1:], strict=True)
        ]
        known = {
            "user": getpass.getuser(),
            "host": host,
            "port": ports[0],
            "first_job": 1 + ports[0] * JOBS_OF_A_CLUSTER % 10_000,
            "directory": self.directory,
        }
        text = SLURM_CONF.format(**known, munge=self._munge, settings=settings.format(**known), nodes="\n".join(nodes))
        for name in (*NODES, "state"):
            (self.directory / name).mkdir()
        for device in range(DEVICES):
            (self.directory / f"nvidia{device}").touch()
        self._write("slurm.conf", text)
        self._write("gres.conf", f"Name=gpu File={self.directory}/nvidia[0-{DEVICES - 1}]\n")
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")  # is chosen by what the host has otherwise, and fails
        self._write("munge.key", os.urandom(32).hex(), mode=0o600)
        self._write("muster.toml", SETTINGS.format(devices=DEVICES))
        self._write("muster", MUSTER.format(directory=self.directory, python=sys.executable), mode=0o755)

    def _write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def _faults(self, node: str) -> Path:
        return self.directory / f"{node}.faults"


def fields(line: str) -> dict[str, str]:
    """`scontrol`'s KEY=VALUE; a value may hold spaces. Texts of people come last and may contain a key again."""
    return dict(reversed(re.findall(r"(\S+?)=(.*?)(?=\s+\S+?=|$)", line.strip())))


NewSlurm = Callable[..., AbstractContextManager[Slurm]]


@pytest.fixture(scope="package")
def new_slurm(live: None, tmp_path_factory) -> NewSlurm:
    """Makes clusters of which each runs for as long as its context lasts: `new_slurm("Prolog={directory}/it")`."""

    def make(settings: str = "") -> Slurm:
        return Slurm(tmp_path_factory.mktemp("slurm"), settings)

    return make


@pytest.fixture(scope="package")
def cluster(new_slurm) -> Iterator[Slurm]:
    """The cluster that tests share."""
    with new_slurm() as running:
        yield running


@pytest.fixture
def nodes(cluster, monkeypatch) -> Iterator[Slurm]:
    """The cluster, for what asks it from this process. Its nodes are idle, and nobody has written beside them."""
    monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
    yield cluster
    cluster.run("scontrol", "cancel_reboot", ",".join(NODES))  # is refused where there is no need
    cluster.run("scancel", "--me")
    for node in NODES:
        cluster.scontrol("update", f"NodeName={node}", "Comment=", "AvailableFeatures=", "ActiveFeatures=")
        cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")  # likewise
    wait_for(lambda: {cluster.node(node).get("State") for node in NODES} == {"IDLE"}, "idle nodes")


@pytest.fixture
def slurm(cluster) -> Iterator[Slurm]:
    """The cluster, whose nodes are healthy."""
    yield cluster
    for node in NODES:
        cluster.mend(node)
