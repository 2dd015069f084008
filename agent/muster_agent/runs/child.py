"""The code of a forked child: it measures, judges and reports to the daemon in JSON, one object per line.

A child of role RUN carries out one assignment and ends. A child of role RESIDENT answers one message after another
until the daemon closes its end.

| The daemon sends | The child answers |
|---|---|
| `{"assignment": Assignment}` | `{"result": RankResult}` |
| `{"inventory": true}` | `{"inventory": Inventory, "failed": {plugin: error}}` |
| `{"idleness": [pids], "afresh": true or false}` | `{"idleness": Idleness, "why": text}` |
| `{"reserve": purpose}`, `{"give_back": true}` | `{"problem": text or null}` |
| `{"watch": [checks]}` | from then on `{"due": check}` whenever the watch of a check returns |
| `{"departure": true}` | from then on `{"leaving": text or null}` whenever it changes |

While it measures, a child sends `{"progress": text}`. At the rendezvous it sends `{"ready": true}` and waits for
`{"go": true}`.
"""

import fcntl
import os
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pydantic_core

from muster.check import AnyCheck, DepartureProbe, Rendezvous, Skip, own_references
from muster.labels import valid_labels
from muster.model import (
    MOST_NAMES,
    Device,
    Finding,
    Inventory,
    MachineType,
    MachineTypeSource,
    Measurement,
    Metric,
    RankResult,
    Verdict,
    verdict_of,
)
from muster.plugins import HookAnswer, Plugins
from muster.references import MACHINE_TYPE, Reference, applicable, waiting
from muster_agent.decide import findings
from muster_agent.decide.orders import Assignment, RankPlace
from muster_agent.runs import process_control
from muster_agent.runs.departure import DepartureWatch
from muster_agent.runs.probes_and_reservations import ProbesAndReservations

RUN = "run"
RESIDENT = "resident"

WATCH_PAUSE_S = 1.0
"""How long a watch rests after it has fired. A storm of events is therefore reported once a second."""

_DYING_S = 1.0
"""How long killed processes may take to disappear. A process that hangs in the kernel never does."""

_SIOCGIFADDR = 0x8915


def run(plugins: Plugins, checks: Mapping[str, AnyCheck], control: socket.socket, listen_fd: int | None) -> None:
    """The role of a child that carries out one assignment."""
    line = ControlChannel(control)
    assignment = Assignment.model_validate(line.hear()["assignment"])
    line.say({"result": carry_out(plugins, checks, RunContext(assignment, line, listen_fd))})


def reside(
    plugins: Plugins,
    checks: Mapping[str, AnyCheck],
    sharing: ProbesAndReservations,
    departures: Sequence[DepartureProbe],
    control: socket.socket,
    _listen_fd: int | None,
) -> None:
    """The role of the long-lived child."""
    line = ControlChannel(control)
    while question := line.hear():
        match question:
            case {"assignment": assignment}:
                process_control.reap()  # only here, because a probe may wait for its own program
                context = RunContext(Assignment.model_validate(assignment), line, None)
                result = carry_out(plugins, checks, context)
                line.say({"result": _without_leftovers(result)})
            case {"inventory": _}:
                inventory, failed = _take_inventory(plugins)
                line.say({"inventory": inventory, "failed": failed})
            case {"idleness": own, "afresh": afresh}:
                # The daemon may not know this process's id yet.
                idleness, why = sharing.idleness(frozenset([*own, os.getpid()]), afresh=afresh)
                line.say({"idleness": idleness, "why": why})
            case {"reserve": purpose}:
                line.say({"problem": sharing.reserve(purpose)})
            case {"give_back": _}:
                line.say({"problem": sharing.give_back()})
            case {"watch": names}:
                for name in names:
                    Thread(target=_watch, args=(checks[name], line), name=f"watch-{name}", daemon=True).start()
            case {"departure": _}:
                DepartureWatch(departures, lambda why: line.say({"leaving": why}), partial(_unwatched, line))


class ControlChannel:
    """The child's end of the control socket."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._heard = control.makefile("rb")
        self._turn = Lock()

    def hear(self) -> dict[str, Any]:
        """The next message of the daemon; empty once the daemon has closed its end."""
        line = self._heard.readline()
        heard: dict[str, Any] = pydantic_core.from_json(line) if line else {}
        return heard

    def say(self, message: dict[str, Any]) -> None:
        line = pydantic_core.to_json(message, inf_nan_mode="null") + b"\n"
        with self._turn:  # a watch sends from its own thread
            self._control.sendall(line)


class RunContext:
    """The Context of a check, in the child that runs it."""

    def __init__(self, assignment: Assignment, line: ControlChannel, listen_fd: int | None) -> None:
        self.assignment = assignment
        self.node = assignment.node
        self.devices: tuple[Device, ...] = assignment.devices
        self.expected_gpus = assignment.expected_gpus
        self.machine_type = assignment.machine_type
        self.scratch: Path = assignment.scratch
        self.timeout_s = assignment.timeout_s
        self._line = line
        self._listen_fd = listen_fd

    def progress(self, text: str) -> None:
        self._line.say({"progress": text})

    def rendezvous(self) -> Rendezvous:
        place = self.assignment.place
        if place is None:
            raise RuntimeError("a run of scope NODE has no rendezvous")
        self._line.say({"ready": True})
        self._line.hear()
        return Rendezvous(
            rank=place.rank,
            local_rank=place.local_rank,
            world_size=place.world_size,
            master_addr=place.master_addr,
            master_port=place.master_port,
            listen_fd=self._listen_fd,
            secret=place.secret,
        )


def carry_out(plugins: Plugins, checks: Mapping[str, AnyCheck], context: RunContext) -> RankResult:
    """Prepares, measures and judges. Any exception of the check becomes a finding."""
    check = checks[context.assignment.check]
    found: list[Finding] = []
    measurement = Measurement()
    started = time.monotonic()
    try:
        context.scratch.mkdir(parents=True)  # inside the try: on a full disk, the run must fail and not the child
        found += _prepare(plugins, check, context)
        measurement = _measured(check, context)
        known = (*own_references(check), *context.assignment.references)
        rows = applicable(known, check.name, measurement.facts)
        found += check.judge(measurement, rows)
        found += _not_judged(check, measurement, rows, context, waiting(known, check.name, measurement.facts))
    except Skip as skip:
        found.append(findings.skipped(str(skip)))
    except Exception as error:
        found.append(findings.raised(error))
    skipped = any(finding.code == "run.skipped" for finding in found)
    return RankResult(
        rank=context.assignment.place.rank if context.assignment.place else 0,
        verdict=Verdict.SKIPPED if skipped else verdict_of(tuple(found)),
        findings=tuple(found[:MOST_NAMES]),
        metrics=measurement.metrics,
        facts=measurement.facts,
        duration_s=time.monotonic() - started,
    )


def _prepare(plugins: Plugins, check: AnyCheck, context: RunContext) -> list[Finding]:
    os.environ["MUSTER_RUN"] = context.assignment.run
    if context.assignment.place is not None:
        os.environ.update(environment(context.assignment.place))
    _, failed = _contributed(plugins, "muster_prepare_run", check=check, context=context)
    return [findings.unprepared(plugin, error) for plugin, error in failed.items()]


def _take_inventory(plugins: Plugins) -> tuple[Inventory, dict[str, str]]:
    """The inventory of the first plugin that has one with all machine types and labels, and the failed plugins."""
    answers, failed = _contributed(plugins, "muster_inventory")
    typed, failed_later = _contributed(plugins, "muster_machine_types")
    labels, failed_last = _labelled(plugins)
    types = [each for answer in typed for each in answer.value]
    inventory = Inventory()
    for answer in answers:
        if answer.value is not None:
            inventory = answer.value
            types += _as_plugin_says(answer.plugin, inventory)
    known = {"machine_types": tuple(types), "labels": labels | inventory.labels}
    return inventory.model_copy(update=known), failed | failed_later | failed_last


def _labelled(plugins: Plugins) -> tuple[dict[str, str], dict[str, str]]:
    """The labels of all plugins, and the plugins that failed or gave labels that Kubernetes would not accept."""
    answers, failed = _contributed(plugins, "muster_labels")
    labels: dict[str, str] = {}
    for answer in answers:
        try:
            labels |= valid_labels(dict(answer.value))
        except ValueError as error:
            failed[answer.plugin] = f"muster_labels: {error}"
    return labels, failed


def _as_plugin_says(plugin: str, inventory: Inventory) -> list[MachineType]:
    name = inventory.machine_type
    return [] if name is None else [MachineType(name=name, source=MachineTypeSource.PLUGIN, said_by=plugin)]


def _contributed(plugins: Plugins, hook: str, **arguments: Any) -> tuple[list[HookAnswer], dict[str, str]]:
    """The answers of the plugins, and by name the errors of the plugins that failed."""
    failed_before = {info.name for info in plugins.failed}
    answers = plugins.contribute(hook, **arguments)
    return answers, {info.name: info.error or "" for info in plugins.failed if info.name not in failed_before}


def _measured(check: AnyCheck, context: RunContext) -> Measurement:
    measurement = check.measure(check.params.model_validate(context.assignment.params), context)
    if not isinstance(measurement, Measurement):
        raise TypeError(f"measure returned {type(measurement).__name__}, not Measurement")
    if context.machine_type is None:
        return measurement
    return measurement.model_copy(update={"facts": {MACHINE_TYPE: context.machine_type, **measurement.facts}})


def _not_judged(
    check: AnyCheck,
    measurement: Measurement,
    rows: Mapping[str, Reference],
    context: RunContext,
    waiting_rows: list[Reference],
) -> list[Finding]:
    """Metrics without a reference to judge them, and those whose references wait for the machine type of the node.

    Only the first rank of a node reports them, once for the run.
    """
    place = context.assignment.place
    if place is not None and place.local_rank > 0:
        return []
    measured = [name for name in check.judged if _is_measured(measurement.metrics.get(name))]
    without = [name for name in measured if name not in rows]
    waiting_for = [row for row in waiting_rows if row.metric in measured]
    return [findings.not_judged(without, waiting_for)] if without or waiting_for else []


def _is_measured(value: Metric) -> bool:
    return any(one is not None for one in (value if isinstance(value, list) else [value]))


def _watch(check: AnyCheck, line: ControlChannel) -> None:
    """Reports each time the watch returns. If the watch raises, it ends, and the check only keeps its cadence."""
    assert check.watch is not None, "the daemon sends only checks that exist"
    try:
        while True:
            check.watch()
            line.say({"due": check.name})
            time.sleep(WATCH_PAUSE_S)
    except Exception as error:
        _unwatched(line, check.name, error)


def _unwatched(line: ControlChannel, name: str, error: Exception) -> None:
    line.say({"unwatched": name, "error": f"{type(error).__name__}: {error}"})


def _without_leftovers(result: RankResult) -> RankResult:
    """Kills processes that a check has left behind in the resident child, and adds a finding about them."""
    names = process_control.end_descendants(_DYING_S)
    if not names:
        return result
    return result.model_copy(update={"findings": (*result.findings, findings.leftovers([*names.values()]))})


def environment(place: RankPlace) -> dict[str, str]:
    """The standard variables of torch for a rank. An interface that the environment already names stays."""
    variables = {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.world_size),
        "LOCAL_RANK": str(place.local_rank),
        "LOCAL_WORLD_SIZE": str(place.local_world_size),
        "MASTER_ADDR": place.master_addr,
        "MASTER_PORT": str(place.master_port),
    }
    interface = os.environ.get("GLOO_SOCKET_IFNAME") or interface_towards(place.master_addr)
    return variables | ({"GLOO_SOCKET_IFNAME": interface} if interface else {})


def interface_towards(host: str) -> str | None:
    """The network interface whose IPv4 address this host uses to reach `host`; None if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))  # nothing is sent: the kernel only chooses a route
        except OSError:
            return None
        address = probe.getsockname()[0]
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                reply = fcntl.ioctl(probe, _SIOCGIFADDR, request)
            except OSError:  # an interface without an IPv4 address
                continue
            if socket.inet_ntoa(reply[20:24]) == address:
                return name
    return None
