"""What an agent takes while it waits: memory and processor time of its three processes, and no GPU memory.

Claim: daemon, launcher and resident child together take at most 80 MiB (PSS) and 0.5 % of one core at default cadences.

Method: a real `muster agent` with a real Mosquitto and coordinator, all plugins and cadences as shipped. NVML is either
the tests' stub with N healthy devices (so that pynvml is loaded and every device is read four times a minute) or that
of the host. After `--settle-s`, in which every background check has been due once, the processor time of the three
processes is taken over `--window-s`, and their memory at its end. Linux splits shared pages between all that map them,
and coordinator and benchmark share Python's with the agent; so a second figure says what it would be alone: anonymous
pages as Linux splits them, and of each mapped file the most that one of the three has in memory.
No GPU memory is held if none of the three has a CUDA library mapped: only they allocate any.

Limits: the stub answers at once and is small; a real libnvidia-ml.so.1 adds its own pages to the resident child.
"""

import argparse
import asyncio
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import psutil

from benchmarks.figures import Figure, arguments, publish
from benchmarks.fleet import ROOT, Fleet, mosquitto

MIB = 2**20
NODE = "node-1"
MAX_MIB = 80.0
MAX_CPU_PERCENT = 0.5

GPU_LIBRARIES = ("libcuda", "libcudart", "libtorch", "libnccl")
"""Whoever allocates GPU memory has one of these mapped; NVML (libnvidia-ml) only asks the driver."""

ROLES = ("daemon", "launcher", "resident")


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of one agent."""
    variables = stubbed_nvml(directory, options.devices) if options.nvml == "stub" else {}
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        await fleet.start_agents(NODE, variables=variables)
        await asyncio.sleep(options.settle_s)
        at_rest = family(fleet.parts[NODE].process.pid)
        before = cpu_s(at_rest)
        await asyncio.sleep(options.window_s)
        share = 100 * (cpu_s(at_rest) - before) / options.window_s
        runs = fleet.client.get("runs", node=NODE, check="nvml", limit=1)["items"]
        print(f"last run of nvml: {runs[0]['verdict'] if runs else 'none'}, {len(runs[0]['metrics']) if runs else 0} metrics")
        return [*memory(at_rest), _cpu(share), _gpu_libraries(at_rest)]


def stubbed_nvml(directory: Path, devices: int) -> dict[str, str]:
    """Builds the tests' stand-in for NVIDIA's library; the environment variables that make pynvml load it."""
    library = directory / "libnvidia-ml.so.1"
    source = ROOT / "tests" / "plugins" / "nvml_stub" / "nvml.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    state = directory / "nvml-state"
    state.write_text(f"devices={devices}\n", encoding="ascii")
    return {"LD_LIBRARY_PATH": str(directory), "STUB_NVML_STATE": str(state)}


def family(daemon: int) -> list[psutil.Process]:
    """Daemon, launcher and resident child; whatever else the agent runs has ended when it is at rest."""
    parent = psutil.Process(daemon)
    found = [parent, *parent.children(recursive=True)]
    if len(found) != len(ROLES):
        raise RuntimeError(f"the agent is not at rest, its processes are {found}: wait longer (--settle-s)")
    return found


def memory(at_rest: list[psutil.Process]) -> list[Figure]:
    """PSS, together and by process, and what they would take with nobody else to share pages with."""
    pss = {role: pages(process, "Pss") for role, process in zip(ROLES, at_rest, strict=True)}
    alone = sum(pages(process, "Pss_Anon") for process in at_rest) + sum(_file_pages(at_rest).values())
    target = ("<=", MAX_MIB)
    return [
        Figure(what="memory, PSS", unit="MiB", value=sum(pss.values()), target=("<=", MAX_MIB), spread=pss),
        Figure(what="memory, sharing with nobody else", unit="MiB", value=alone / 1, target=("<=", MAX_MIB)),
    ]
