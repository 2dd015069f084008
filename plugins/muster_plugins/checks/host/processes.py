"""Processes that hang in the GPU driver: stuck in the kernel (state D), or dead and not reaped (state Z).

A process is stuck if it was in the kernel at two looks and has not run in between. The look reads only files that do
not wait for the process; reading its command line could hang.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from muster import Action, Context, Finding, Measurement, Reference, Severity
from muster.model import Data
from muster_plugins.checks.host.look import CannotDetermine, read
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.metric_judgement import judge_single

DRIVER_NAMES = ("nvidia*", "nv_*", "nv-*", "UVM *", "irq/*-nvidia*")
"""Names of the driver's kernel threads and of NVIDIA's services."""

FINDS = {
    "host.stuck_process": "processes hang in the GPU driver, or cannot die",
    "host.driver_zombie": "dead processes of the driver that their parent has not reaped",
    "host.zombies": "many dead processes that their parents have not reaped",
    "host.not_yet_compared": "stuck processes are found from the second run on",
}

_NOT_RUNNING = ("D", "Z")

_PAGE_BYTES = 4096  # the kernel gives the whole file at once, if there is room for it

_COUNT = re.compile(r"\d{1,20}", re.ASCII)

_IN_DRIVER = re.compile(r"_?nv|uvm|os_acquire")
"""Prefixes of the kernel functions in which a process waits for NVIDIA's driver. Only root can read them."""


class ProcessesReading(Data):
    """One look. `stuck` and `driver_zombies` name the processes that were stuck or dead at the last look, too."""

    is_first: bool = False
    stuck: tuple[str, ...] = ()
    driver_zombies: tuple[str, ...] = ()


class StuckProcess(NamedTuple):
    """A process that is stuck or dead. `switches` shows whether it has run since."""

    pid: int
    name: str
    state: str
    switches: int


class Processes:
    """Examines every process of the host, and remembers those that did not run."""

    def __init__(self, proc: Path, driver_names: Sequence[str]) -> None:
        self._proc = proc
        self._driver_names = driver_names
        self._before: frozenset[StuckProcess] | None = None

    def __call__(self, context: Context) -> Measurement:
        """The numbers of zombies and of stuck processes of the driver."""
        read(self._proc / "1/status")  # if other users' processes are hidden, process 1 is too
        found = frozenset(self._not_running())
        still = sorted(found & (self._before or frozenset()))
        is_first, self._before = self._before is None, found
        stuck = [process for process in still if self._is_stuck(process)]
        zombies = [process for process in still if process not in stuck and self._is_drivers_zombie(process)]
        reading = ProcessesReading(is_first=is_first, stuck=_named(stuck), driver_zombies=_named(zombies))
        return Measurement(
            metrics={
                "stuck_processes": float(len(stuck)),
                "zombies": float(sum(process.state == "Z" for process in found)),
            },
            facts={"processes": reading.model_dump(mode="json")},
        )

    def _not_running(self) -> Iterator[StuckProcess]:
        for entry in self._proc.iterdir():
            if not entry.name.isdecimal():
                continue
            process = _process(entry)
            if process is not None:
                yield process

    def _is_stuck(self, process: StuckProcess) -> bool:
        """Whether it hangs in the driver, or was killed while a thread of it is still in the kernel."""
        entry = self._proc / str(process.pid)
        if process.state == "Z":
            return any(thread is not None and thread.state == "D" for thread in map(_process, entry.glob("task/*")))
        return self._is_driver(process) or _waits_for_driver(entry) or _holds_device(entry)

    def _is_drivers_zombie(self, process: StuckProcess) -> bool:
        return process.state == "Z" and self._is_driver(process)

    def _is_driver(self, process: StuckProcess) -> bool:
        return any(fnmatch.fnmatchcase(process.name, pattern) for pattern in self._driver_names)


def _process(entry: Path) -> StuckProcess | None:
    """The process from the file `status`; None if it is neither stuck nor dead, has ended, or cannot be read.

    There may be thousands of healthy processes, so this reads only as much of each as it needs to recognise them.
    """
    try:
        with (entry / "status").open("rb", buffering=0) as file:
            text = file.read(_PAGE_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None
    state = text.partition("\nState:\t")[2][:1]
    if state not in _NOT_RUNNING:
        return None
    said = {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    switches = [said.get(f"{kind}voluntary_ctxt_switches", "") for kind in ("", "non")]
    return StuckProcess(
        pid=int(entry.name),
        name=said.get("Name", ""),
        state=state,
        switches=sum(int(count) for count in switches if _COUNT.fullmatch(count)),
    )


def _waits_for_driver(entry: Path) -> bool:
    try:
        return _IN_DRIVER.match(read(entry / "wchan")) is not None
    except CannotDetermine:
        return False


def _holds_device(entry: Path) -> bool:
    """Whether it has an NVIDIA device open. Only root can see this for other users' processes."""
    try:
        return any(str(link.readlink()).startswith("/dev/nvidia") for link in (entry / "fd").iterdir())
    except OSError:
        return False


def _named(processes: Sequence[StuckProcess]) -> tuple[str, ...]:
    return tuple(f"{process.name} ({process.pid})" for process in processes)


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Finds each process that the driver holds, and too many zombies."""
    reading = ProcessesReading.model_validate(measurement.facts.get("processes", {}))
    return [
        *listed_finding(FINDS, "host.stuck_process", Severity.ERROR, reading.stuck, Action.REBOOT_NODE),
        *listed_finding(FINDS, "host.driver_zombie", Severity.WARNING, reading.driver_zombies),
        *_not_yet_compared(reading),
        *judge_single(measurement, references, "zombies", code="host.zombies"),
    ]


def _not_yet_compared(reading: ProcessesReading) -> list[Finding]:
    code = "host.not_yet_compared"
    return [Finding(code=code, summary=FINDS[code], severity=Severity.SKIPPED)] if reading.is_first else []
