"""What the background checks cost a training that runs beside them.

Claim: at default cadence they slow the training by less than 0.5 %.

Method: this process trains a network, on the first GPU or else on the CPU with N threads, beside a real `muster agent`
with all plugins and cadences as shipped. By default one core is left to everybody else, as the training of a GPU node
leaves most; with a thread on every core, whatever runs at all takes time from it. Windows in which the agent works and
windows in which all its processes are stopped (SIGSTOP) take turns, in the order on off, off on, so that what becomes
steadily warmer or slower is in both. Each pair gives a ratio of steps per second, and the median of the pairs counts. A
window is as long as the longest cadence, so that every background check falls into it. Checks that a pause has delayed
run before the window begins. Without a GPU, NVML is the tests' stub with N devices, which says that the training uses
them all; otherwise the checks would find the devices idle, and try to use them. `/sys` and the kernel's log are those
of the host in either case.

Limits: a coordinator and a broker, which usually are on another host, run here all the time, so what they do with the
agent's reports counts as the agent's. On a machine that others use, pairs differ by much more than the claim is about.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import torch
from benchmarks.agent_at_rest import NODE, family, stubbed_nvml
from benchmarks.figures import Figure, arguments, median_of, publish
from benchmarks.fleet import Fleet, mosquitto

MAX_SLOWDOWN_PERCENT = 0.5

Step = Callable[[], None]

Rates = dict[bool, float]
"""Steps per second of a pair, by whether the agent worked."""


class Size(NamedTuple):
    """Of the network and its batches."""

    width: int
    batch: int


SIZES = {"cuda": Size(width=8192, batch=4096), "cpu": Size(width=512, batch=128)}
"""Steps take tens of milliseconds, so that a window holds thousands of them."""


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of all pairs."""
    gpu = torch.cuda.is_available()
    variables = {} if gpu else devices_in_use(directory, options.devices)
    step = training("cuda" if gpu else "cpu")
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        await fleet.start_agents(NODE, variables=variables)
        await asyncio.to_thread(steps_per_s, step, options.settle_s)
        pairs = [await pair(fleet, step, options, first=bool(number % 2)) for number in range(options.pairs)]
        runs = await asyncio.to_thread(fleet.client.get, "runs", node=NODE)
    ended = sorted({f"{run['check']} {run['verdict']}" for run in runs["items"]})
    print(f"runs meanwhile: {', '.join(ended)}")
    return figures(pairs)


def devices_in_use(directory: Path, devices: int) -> dict[str, str]:
    """The stub of NVML with devices that all work for this process; the variables that make pynvml load it."""
    variables = stubbed_nvml(directory, devices)
    with Path(variables["STUB_NVML_STATE"]).open("a", encoding="ascii") as state:
        state.writelines(f"process_{device}={os.getpid()}\nutilisation_{device}=100\n" for device in range(devices))
    return variables


def training(device: str) -> Step:
    """One step of a training: forward, backward and an update of the weights, waited for."""
    size = SIZES[device]
    with torch.device(device):
        layers = [torch.nn.Linear(size.width, size.width) for _ in range(4)]
        network = torch.nn.Sequential(*layers)
        samples, wanted = torch.randn(2, size.batch, size.width)
    descent = torch.optim.SGD(network.parameters(), lr=1e-3)

    def step() -> None:
        descent.zero_grad()
        loss = torch.nn.functional.mse_loss(network(samples), wanted)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without types
        descent.step()
        loss.item()

    return step


async def pair(fleet: Fleet, step: Step, options: argparse.Namespace, *, first: bool) -> Rates:
    """A window with the agent and one without it; `first` says with which of them it begins."""
    return {works: await window(fleet, step, options, works=works) for works in (first, not first)}


async def window(fleet: Fleet, step: Step, options: argparse.Namespace, *, works: bool) -> float:
    """Steps per second while the agent works, or while all its processes are stopped."""
    at_work = await family(fleet.parts[NODE].process.pid)
    if not works:
        suspend(at_work)
    try:
        return await asyncio.to_thread(steps_per_s, step, options.window_s)
    finally:
        if not works:
            resume(at_work)
            await asyncio.to_thread(steps_per_s, step, options.catch_up_s)


def suspend(processes: list[psutil.Process]) -> None:
    """Stops them, parents first, so that none sees its child stand still."""
    for process in processes:
        process.suspend()


def resume(processes: list[psutil.Process]) -> None:
    """Lets them go on, children first, so that each finds what its child had still to say."""
    for process in reversed(processes):
        process.resume()


def steps_per_s(step: Step, seconds: float) -> float:
    """Of the steps that begin within this number of seconds, at least one."""
    done, start = 0, time.perf_counter()
    while True:
        step()
        done += 1
        if (took := time.perf_counter() - start) >= seconds:
            return done / took


def figures(pairs: list[Rates]) -> list[Figure]:
    """Both rates, and by how much the agent slows the training."""
    slowdowns = [100 * (rates[False] / rates[True] - 1) for rates in pairs]
    return [
        median_of("training, agent stopped", "steps/s", [rates[False] for rates in pairs]),
        median_of("training, agent at work", "steps/s", [rates[True] for rates in pairs]),
        median_of("slowed down", "%", slowdowns, ("<=", MAX_SLOWDOWN_PERCENT)),
    ]


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    spare = max(1, (os.cpu_count() or 1) - 1)
    parser.add_argument("--threads", type=int, default=spare, help="threads of a training on the CPU")
    parser.add_argument("--devices", type=int, default=8, help="how many devices the stub has")
    parser.add_argument("--settle-s", type=float, default=60.0, help="seconds of training before the first window")
    parser.add_argument("--window-s", type=float, default=60.0, help="seconds of a window")
    parser.add_argument("--catch-up-s", type=float, default=5.0, help="seconds of training after the agent was stopped")
    parser.add_argument("--pairs", type=int, default=10, help="how many pairs of windows")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(options, Path(directory)))
    publish(options, found)


if __name__ == "__main__":
    main()
