"""What an agent takes while it waits: memory and processor time of its three processes, and no GPU memory.

Claim: daemon, launcher and resident child together take at most 60 MiB (PSS) and 0.5 % of one core at default cadences.

Method: a real `muster agent` with a real Mosquitto and coordinator, all plugins and cadences as shipped. NVML is either
the tests' stub with N healthy devices (so that pynvml is loaded and every device is read four times a minute) or that
of the host. After `--settle-s`, in which every background check has been due once, the processor time of the three
processes is taken over `--window-s`, and their memory at its end. Linux splits shared pages between all that map them,
and coordinator and benchmark share Python's with the agent; so a second figure says what it would be alone: anonymous
pages as Linux splits them, and of each mapped file the most that one of the three has in memory. A third figure is what
each process has for itself: only that much would be free without it.
With the host's NVML, `nvidia-smi` says how many of the three hold GPU memory. With the stub, none can if none has a
CUDA library mapped: only they allocate any.

Limits: the stub answers at once and is small; a real libnvidia-ml.so.1 adds its own pages to the resident child, and
maps a CUDA library itself.
"""

import argparse
import asyncio
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import psutil
from benchmarks.figures import Figure, Target, arguments, publish
from benchmarks.fleet import POLL_S, ROOT, Fleet, mosquitto

from muster.errors import Unavailable

MIB = 2**20
NODE = "node-1"
MAX_MIB = 60.0
MAX_CPU_PERCENT = 0.5
AT_REST_WITHIN_S = 60.0

WAIT_STEP_MS = 1000
"""How often the stand-in for NVIDIA's library looks for an event. Every 50 ms took it a third of the agent's time."""

GPU_LIBRARIES = ("libcuda", "libcudart", "libtorch", "libnccl")
"""A process that allocates GPU memory has one of these mapped."""

COMPUTING = ("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")

ROLES = ("daemon", "launcher", "resident")


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of one agent."""
    variables = stubbed_nvml(directory, options.devices) if options.nvml == "stub" else {}
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        spread = {"agent": {"spread_s": options.spread_s}}
        await fleet.start_agents(NODE, settings=spread, variables=variables)
        await asyncio.sleep(options.settle_s)
        at_rest = await family(fleet.parts[NODE].process.pid)
        before_s = cpu_s(at_rest)
        await asyncio.sleep(options.window_s)
        share = 100 * (cpu_s(at_rest) - before_s) / options.window_s
        at_rest = await family(at_rest[0].pid)  # again: the child of a run would share their pages
        gpu = _gpu_libraries(at_rest) if options.nvml == "stub" else _on_the_gpu(at_rest)
        figures = [*memory(at_rest), _cpu(share), gpu]
        runs = await asyncio.to_thread(fleet.client.get, "runs", node=NODE, check="nvml")
    verdicts = sorted({run["verdict"] for run in runs["items"]})
    print(f"{len(runs['items'])} runs of nvml by then, verdicts: {', '.join(verdicts)}")
    return figures


def stubbed_nvml(directory: Path, devices: int) -> dict[str, str]:
    """Builds the tests' stand-in for NVIDIA's library; the environment variables that make pynvml load it."""
    library = directory / "libnvidia-ml.so.1"
    source = ROOT / "tests" / "plugins" / "nvml_stub" / "nvml.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    state = directory / "nvml-state"
    state.write_text(f"devices={devices}\nwait_step_ms={WAIT_STEP_MS}\n", encoding="ascii")
    return {"LD_LIBRARY_PATH": str(directory), "STUB_NVML_STATE": str(state)}


async def family(daemon: int) -> list[psutil.Process]:
    """Daemon, launcher and resident child, as soon as whatever else the agent runs has ended."""
    parent = psutil.Process(daemon)
    async with asyncio.timeout(AT_REST_WITHIN_S):
        while True:
            found = [parent, *parent.children(recursive=True)]
            if len(found) == len(ROLES):
                return found
            await asyncio.sleep(POLL_S)


def cpu_s(processes: list[psutil.Process]) -> float:
    """Processor seconds of the processes since they began, in user space and in the kernel."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def memory(at_rest: list[psutil.Process]) -> list[Figure]:
    """PSS, together and by process, and what they would take with nobody else to share pages with."""
    pss = {role: rollup_mib(process, "Pss") for role, process in zip(ROLES, at_rest, strict=True)}
    anonymous = sum(rollup_mib(process, "Pss_Anon") for process in at_rest)
    own = {
        role: rollup_mib(process, "Private_Dirty") + rollup_mib(process, "Private_Clean")
        for role, process in zip(ROLES, at_rest, strict=True)
    }
    target: Target = ("<=", MAX_MIB)
    return [
        Figure(what="memory, PSS together", unit="MiB", value=sum(pss.values()), target=target, spread=pss),
        Figure(what="memory, alone on a host", unit="MiB", value=anonymous + files_mib(at_rest)),
        Figure(what="memory that no other process has", unit="MiB", value=sum(own.values()), spread=own),
    ]


def rollup_mib(process: psutil.Process, key: str) -> float:
    """A value of the kernel's summary of a process's memory."""
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise Unavailable(f"this kernel does not tell {key}")


def files_mib(processes: list[psutil.Process]) -> float:
    """Of every mapped file the most that one of the processes has in memory, together."""
    resident: dict[str, int] = defaultdict(int)
    for process in processes:
        for mapping in process.memory_maps():
            resident[mapping.path] = max(resident[mapping.path], mapping.rss - mapping.anonymous)
    return sum(resident.values()) / MIB


def _cpu(share: float) -> Figure:
    return Figure(what="processor time", unit="% of a core", value=share, target=("<=", MAX_CPU_PERCENT))


def _gpu_libraries(processes: list[psutil.Process]) -> Figure:
    paths = {mapping.path for process in processes for mapping in process.memory_maps()}
    mapped = sum(Path(path).name.startswith(GPU_LIBRARIES) for path in paths)
    return Figure(what="CUDA libraries mapped", unit="files", value=mapped, target=("<=", 0))


def _on_the_gpu(processes: list[psutil.Process]) -> Figure:
    listed = subprocess.run(COMPUTING, check=True, capture_output=True, text=True).stdout.split()
    holding = len({str(process.pid) for process in processes} & set(listed))
    return Figure(what="holding GPU memory", unit="processes", value=holding, target=("<=", 0))


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nvml", choices=("stub", "host"), default="stub", help="whose NVML is read")
    parser.add_argument("--devices", type=int, default=8, help="how many devices the stub has")
    parser.add_argument("--spread-s", type=float, default=30.0, help="seconds over which first runs are spread")
    parser.add_argument("--settle-s", type=float, default=60.0, help="seconds to wait before measuring")
    parser.add_argument("--window-s", type=float, default=120.0, help="seconds over which processor time is taken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
