"""Detects the job of this process from the environment of torchrun, srun or a Kubernetes operator. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from muster.addresses import possible_host
from muster.errors import Refused

DERIVED_PORTS = (20_000, 10_000)
"""The first port and the number of ports to choose from, if the environment names no port for muster.

They lie below the ports that Linux gives to connections, so that no connection of another program holds one.
"""

_FIRST_OF_CONNECTIONS = 32_768
"""The kernel chooses ports from here on, unless net.ipv4.ip_local_port_range says otherwise (Linux, ip-sysctl)."""

_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceJob:
    """One process of a job. The others reach rank 0 at `address`:`port`.

    `local_rank` counts the processes of one node, of which there are `local_size`.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    address: str
    port: int

    @property
    def leads(self) -> bool:
        return self.rank == 0


def detect(environment: Mapping[str, str]) -> AcceptanceJob | None:
    """The job of this process; None if it is alone. Raises Refused if the environment names only part of a job."""
    if "RANK" in environment or "WORLD_SIZE" in environment:
        job = _from_torch(environment)
    elif "SLURM_PROCID" in environment and "SLURM_STEP_ID" in environment:  # batch scripts and prologs have no step
        job = _from_slurm(environment)
    else:
        return None
    _hold_together(job)
    return job if job.size > 1 else None


def _hold_together(job: AcceptanceJob) -> None:
    if not 0 <= job.rank < job.size:
        raise Refused(f"rank {job.rank} does not exist in a job of {job.size} processes")
    if not 0 <= job.local_rank < job.local_size:
        raise Refused(f"local rank {job.local_rank} does not exist among the {job.local_size} processes on this node")
    if not 0 < job.port <= _LAST_PORT:
        raise Refused(f"MASTER_PORT gives port {job.port}, which is not between 1 and {_LAST_PORT}")
    try:
        possible_host(job.address)
    except ValueError as error:
        raise Refused(f"MASTER_ADDR: {error}") from None


def _from_torch(environment: Mapping[str, str]) -> AcceptanceJob:
    return AcceptanceJob(
        rank=_number(environment, "RANK"),
        size=_number(environment, "WORLD_SIZE"),
        local_rank=_number(environment, "LOCAL_RANK", 0),
        local_size=_number(environment, "LOCAL_WORLD_SIZE", 1),
        address=_text(environment, "MASTER_ADDR"),
        port=_port_of_torch(environment),
    )


def _port_of_torch(environment: Mapping[str, str]) -> int:
    """MASTER_PORT, or another if torchrun holds that one itself.

    If a person chose MASTER_PORT, the next port is free as a rule. If torchrun took any free one, as `--standalone` and
    the rendezvous c10d do, the next port may be that of a connection: on a host with 1,000 connections, one start in 28
    would fail.
    """
    port = _number(environment, "MASTER_PORT")
    if "TORCHELASTIC_RUN_ID" not in environment:
        return port
    return port + 1 if port < _FIRST_OF_CONNECTIONS else _derived_port(port)


def _derived_port(number: int) -> int:
    first, count = DERIVED_PORTS
    return first + number % count


def _from_slurm(environment: Mapping[str, str]) -> AcceptanceJob:
    nodes = environment.get("SLURM_STEP_NODELIST") or _text(environment, "SLURM_NODELIST")
    tasks = environment.get("SLURM_STEP_TASKS_PER_NODE") or environment.get("SLURM_TASKS_PER_NODE", "1")
    size = _number(environment, "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environment else "SLURM_NTASKS")
    return AcceptanceJob(
        rank=_number(environment, "SLURM_PROCID"),
        size=size,
        local_rank=_number(environment, "SLURM_LOCALID", 0),
        local_size=tasks_on_node(tasks, _number(environment, "SLURM_NODEID", 0)),
        address=environment.get("MASTER_ADDR") or first_host(nodes),
        port=_number(environment, "MASTER_PORT", _derived_port(_number(environment, "SLURM_JOB_ID", 0))),
    )


def first_host(nodes: str) -> str:
    """The first host of Slurm's list. Example: gpu03 for `gpu[03-07,9],login`.

    Written by hand, because the only library, python-hostlist, has a licence (GPL) that would become muster's. The
    coordinator has a parser for whole lists; agents do not import it, and a job of ten thousand hosts needs only one.
    """
    found = re.match(r"([^\[,]+)(?:\[(\d+)[^\]]*\]([^,]*))?", nodes)
    if found is None:
        raise Refused(f"SLURM_NODELIST {nodes!r} is not a list of hosts")
    return "".join(part or "" for part in found.groups())


def tasks_on_node(tasks: str, node: int) -> int:
    """The number of tasks of a node, counted from 0, in Slurm's notation. Example: 3 for node 2 of `4(x2),3`.

    Written by hand: no library reads this notation, and Slurm's own commands may be missing inside a container.
    """
    try:
        for part in tasks.split(","):
            count, _, times = part.rstrip(")").partition("(x")
            node -= int(times or 1)
            if node < 0:
                return int(count)
    except ValueError:
        pass
    raise Refused(f"SLURM_TASKS_PER_NODE {tasks!r} does not say how many tasks the node has")


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise Refused(f"{name} is not set; a job gives RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or see --alone")
    return value


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    if default is not None and not environment.get(name):
        return default
    value = _text(environment, name)
    if not value.isascii() or not value.isdigit():
        raise Refused(f"{name} is {value!r}, which is not a number; see --alone to ignore the job")
    return int(value)
