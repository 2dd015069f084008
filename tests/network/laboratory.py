"""A fleet on a network of namespaces: a real broker, a coordinator, and an agent on every node."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import psutil
from tests.muster_process import ONE_THREAD, TORCH, MusterProcess, Recorded, changed_at_the_start
from tests.network.namespaces import Namespace, executable
from tests.network.programs import Program
from tests.network.wires import COORDINATOR, Network
from tests.waiting import PATIENCE_S, SHORTEST_PAUSE_S, wait_for

from muster_coordinator.local import processes
from muster_coordinator.model.sweep_records import SweepRecord

MESSAGE_BYTES = 1 << 19

BESIDE_RANKS = 2
"""Children of an agent's launcher at most, when no rank runs."""

HEARTBEAT_S = 2.0


NOT_NEEDED = [it.name for it in entry_points(group="muster") if it.name not in ("collective", "simulated")]
"""Plugins whose checks would only take time from those that these tests are about."""

BROKER = """
listener 1883
allow_anonymous true
max_queued_messages 0
user root
"""


LONG = 180
"""Iterations of a group that lasts for four seconds or more."""

ENOUGH_SEGMENTS = 16
"""Iterations with twice as many TCP segments as are needed to judge how many of them were sent again."""

MOST_SENT = LONG * MESSAGE_BYTES // 2
"""Bytes after which a rank of such a group is not done: in all, it sends at least `LONG` messages."""


@dataclass(frozen=True, slots=True)
class LongSweep:
    """A sweep that goes on, and the bytes that a node had sent before it."""

    sweep: Recorded
    node: str
    sent_before: int


def _resume(halted: Iterable[psutil.Process]) -> None:
    for rank in halted:
        with suppress(psutil.NoSuchProcess):  # it may have been killed
            rank.resume()


class Laboratory:
    """The fleet on its `network`: a broker, a coordinator, and an agent on every node.

    `directory` takes their logs and databases; `clock` is a library that shifts the clock of the process that loads it.
    """

    def __init__(self, network: Network, directory: Path, clock: Path) -> None:
        self.network = network
        self.agents: dict[str, Program] = {}
        self._centre = network.places[COORDINATOR]
        self._directory = directory
        self._clock = clock
        self._programs: list[Program] = []
        self._changed: set[str] = set()

    def start(self) -> None:
        config = self._directory / "mosquitto.conf"
        config.write_text(BROKER)
        self._start_new(self._centre, "broker", "mosquitto", "-c", str(config))
        coordinator = self._start_muster(COORDINATOR, {}, {})
        # For an agent that is not forked: its ranks are forks of it, and would each import torch, were it not there.
        (self._directory / "sitecustomize.py").write_text("import torch.distributed\n")
        for node in self.network.cabling.nodes:
            self._start_agent(node)
        wait_for(lambda: coordinator.has_said("coordinator_ready"), "the coordinator to be ready")

    def end(self) -> None:
        for program in self._programs:
            program.kill()

    def set_right(self) -> None:
        """Makes the network healthy and every agent as it should be, and waits until all are there and free."""
        self.network.mend()
        mended = time.time()
        while self._changed:
            self._start_agent(self._changed.pop())
        self._wait_until_free()
        while self.network.cut_off:
            node = self.network.cut_off.pop()
            wait_for(lambda: self._heard_at(node) > mended, f"{node} to be heard again")  # noqa: B023 (called here)

    def change_agent(self, node: str, *, clock_off_by_s: int = 0, **settings: Any) -> None:
        """Starts the agent of a node again, with another clock or settings, which it has until all is set right."""
        self._changed.add(node)
        self._start_agent(node, clock_off_by_s, **settings)
        self._wait_until_free()

    def muster(self, *arguments: str) -> Any:
        """The JSON that a command prints, run where the coordinator is."""
        return printed(self._muster(*arguments))

    def _muster(self, *arguments: str) -> Recorded:
        env = os.environ | {"MUSTER_DATA_DIR": str(self._directory / COORDINATOR)}  # where the API's token is
        return Recorded(*arguments, "--json", env=env, network_of=self._centre.pid)

    # Sweeps

    def sweep(self, **params: Any) -> SweepRecord:
        """An adaptive sweep over all nodes, once it has ended."""
        return self.ended_sweep(self.start_sweep(**params))

    def start_sweep(self, **params: Any) -> Recorded:
        """Such a sweep that goes on, for `ended_sweep`."""
        given = {"size_bytes": MESSAGE_BYTES, "iterations": 7, "warmup": 1, "timeout_s": 5} | params
        options = [f"--param={name}={value}" for name, value in given.items()]
        return self._muster("sweep", "start", "--check=collective", "--strategy=adaptive", *options, "--wait")

    def ended_sweep(self, sweep: Recorded) -> SweepRecord:
        return SweepRecord.model_validate(printed(sweep))

    @contextmanager
    def halted_in_a_sweep(self, node: str) -> Iterator[Recorded]:
        """A sweep in which the ranks of `node` send to others, and do nothing at all while the context lasts.

        What happens to the network meanwhile happens for certain before their group has ended.
        """
        going_on, halted = self._halted(node)
        while self._sent_since(going_on) > MOST_SENT:  # a busy machine was late: they may have been done
            _resume(halted)
            self.ended_sweep(going_on.sweep)
            self._wait_until_free()
            going_on, halted = self._halted(node)
        try:
            yield going_on.sweep
        finally:
            _resume(halted)

    def _halted(self, node: str) -> tuple[LongSweep, list[psutil.Process]]:
        """A new sweep, and the ranks of `node` in it, which have begun to send and are halted; none if it has ended."""
        going_on = LongSweep(self.start_sweep(iterations=LONG, timeout_s=10), node, self.agents[node].bytes_sent)
        halted: list[psutil.Process] = []

        def halts() -> bool:
            has_ended = going_on.sweep.poll() is not None
            assert not has_ended or self._sent_since(going_on) > MOST_SENT, going_on.sweep.ended()
            if self._sent_since(going_on) > MESSAGE_BYTES:
                for rank in self.agents[node].ranks:
                    with suppress(psutil.NoSuchProcess):
                        rank.suspend()
                        halted.append(rank)
            return has_ended or bool(halted)

        wait_for(halts, f"{node} to have ranks that send", longest_pause_s=SHORTEST_PAUSE_S)
        return going_on, halted

    def _sent_since(self, going_on: LongSweep) -> int:
        return self.agents[going_on.node].bytes_sent - going_on.sent_before

    # Programs

    def _start_agent(self, node: str, clock_off_by_s: int = 0, **settings: Any) -> None:
        if node in self.agents:
            self.agents[node].kill()
        ours = {
            "node": node,
            "agent": {"leaf": self.network.cabling.leaf_of[node], "heartbeat_s": HEARTBEAT_S},
            "checks": {"simulated": {"enabled": False}},
            "plugins": {"disabled": NOT_NEEDED, "simulated": {"enabled": True, "devices": 1}},
        }
        variables = {"PYTHONPATH": str(self._directory), **ONE_THREAD}  # six nodes share two cores
        if clock_off_by_s:
            variables |= {"LD_PRELOAD": str(self._clock), "CLOCK_OFF_BY_S": str(clock_off_by_s)}
        self.agents[node] = self._start_muster(node, ours | settings, variables)

    def _start_muster(self, name: str, settings: Mapping[str, Any], variables: Mapping[str, str]) -> Program:
        """Starts the part of muster that belongs where `name` is."""
        everywhere = {
            "data_dir": str(self._directory / name),
            "broker": {"url": f"mqtt://{self.network.cabling.addresses[COORDINATOR]}"},
            "log": {"format": "json"},
        }
        part = COORDINATOR if name == COORDINATOR else "agent"
        env = processes.environment(everywhere | dict(settings)) | dict(variables)
        if changed_at_the_start(env):
            return self._start_new(self.network.places[name], name, sys.executable, "-m", "muster", part, env=env)
        log = self._directory / f"{name}.log"
        with log.open("wb") as output:
            place = self.network.places[name].pid
            process = MusterProcess(part, env=env, stdout=output, stderr=output, imports=TORCH, network_of=place)
        return self._keep(Program(process, log))

    def _start_new(self, place: Namespace, name: str, *command: str, env: Mapping[str, str] | None = None) -> Program:
        """Starts a program from its file; it is killed when the tests are."""
        log = self._directory / f"{name}.log"
        until_we_die = [executable("setpriv"), "--pdeathsig", "KILL", executable(command[0]), *command[1:]]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*place.enter, *until_we_die], env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return self._keep(Program(process, log))

    def _keep(self, program: Program) -> Program:
        self._programs.append(program)
        return program

    def _wait_until_free(self) -> None:
        for node, agent in self.agents.items():
            wait_for(partial(agent.has_said, "broker_connected"), f"{node} to be connected")
        wait_for(self._all_are_there, "the coordinator to know every node")
        wait_for(lambda: all(len(agent.children) <= BESIDE_RANKS for agent in self.agents.values()), "all ranks to end")

    def _heard_at(self, node: str) -> float:
        """When the coordinator heard a node last. TCP may be silent for a while after the network is whole again."""
        (found,) = (each for each in self.muster("node", "list")["items"] if each["name"] == node)
        return datetime.fromisoformat(found["last_seen"]).timestamp()

    def _all_are_there(self) -> bool:
        nodes = self.muster("node", "list")["items"]
        return {node["name"] for node in nodes if not node["lost"] and node["plugins"]} == set(
            self.network.cabling.nodes
        )


def printed(command: Recorded) -> Any:
    """The JSON that a command has printed when it has ended."""
    done = command.ended(PATIENCE_S)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)
