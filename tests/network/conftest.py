"""A fleet on real networks: every node in a network namespace of its own, with links that the tests limit and cut.

    coordinator with broker
            |
         leaf r1 ========= uplink ========= leaf r2
         |   |  |                           |  |   |
    node-1   2  3                           4  5   node-6

A leaf is a bridge, and every line a pair of virtual interfaces. The namespaces have no names, and whatever runs in them
ends with the tests, so that nothing of them is left behind even when these are killed.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.muster_process import ONE_THREAD, TORCH, AnyProcess, MusterProcess, Recorded, changed_at_the_start
from tests.waiting import PATIENCE_S, SHORTEST_PAUSE_S, wait_for

from muster_coordinator.local import processes
from muster_coordinator.model.sweep_records import SweepRecord

HERE = Path(__file__).parent

LEAVES = {"r1": ("node-1", "node-2", "node-3"), "r2": ("node-4", "node-5", "node-6")}
LEAF_OF = {node: leaf for leaf, nodes in LEAVES.items() for node in nodes}
NODES = tuple(LEAF_OF)
COORDINATOR = "coordinator"
ADDRESSES = {COORDINATOR: "10.0.0.100"} | {node: f"10.0.0.{number}" for number, node in enumerate(NODES, 1)}

LINK_MBITPS = 200
"""What a healthy link carries: so little that two cores keep six of them busy, whatever else they have to do."""

PACKET_BYTES = 9000
"""Jumbo frames take less work than the same bytes in smaller packets."""

MESSAGE_BYTES = 1 << 19

BESIDE_RANKS = 2
"""Children of an agent's launcher at most, when no rank runs."""

ESTABLISHED = "01"
"""The state of a connection in /proc/net/tcp (include/net/tcp_states.h)."""
HEARTBEAT_S = 2.0

NOT_NEEDED = [it.name for it in entry_points(group="muster") if it.name not in ("collective", "simulated")]
"""Plugins whose checks would only take time from those that these tests are about."""

BROKER = """
listener 1883
allow_anonymous true
max_queued_messages 0
user root
"""

FILTER = """
flush ruleset
table bridge faults {{
    chain forward {{
        type filter hook forward priority 0
        {rules}
    }}
}}
"""


def executable(name: str) -> str:
    """Where a program is; Debian keeps some out of users' PATH."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert found, f"{name} is missing; .ci/system-packages says which package has it"
    return found


class Namespace:
    """A network of its own. `enter` goes before the command line of a program that is to run there."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.enter = ["nsenter", f"--target={pid}", "--user", "--net", "--preserve-credentials"]

    def run(self, program: str, *arguments: str, text: str = "") -> None:
        """Runs a program to its end, with `text` as its input."""
        command = [*self.enter, executable(program), *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}\n{text}"

    def ip(self, *commands: str) -> None:
        self.run("ip", "-batch", "-", text="\n".join(commands))

    def limit(self, interface: str, mbitps: int) -> None:
        """What an interface sends from now on at most."""
        bucket = ("rate", f"{mbitps}mbit", "burst", "64kb", "limit", "8mb")
        self.run("tc", "qdisc", "replace", "dev", interface, "root", "tbf", *bucket)


@contextmanager
def new_namespace(*enter: str) -> Iterator[Namespace]:
    """A network with nothing in it, while the context lasts.

    `cat` holds it open, which waits for input, and so ends with this process at the latest.
    """
    with subprocess.Popen(
        [*enter, "unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as holder:
        assert holder.stdin and holder.stdout and holder.stderr
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        is_there = holder.stdout.readline()
        assert is_there, f"these tests need user namespaces: {holder.stderr.read().decode()}"
        yield Namespace(holder.pid)


class Network:
    """The namespaces, by who is in them, and the wires between them. All rates are in Mbit/s."""

    def __init__(self, fabric: Namespace, places: Mapping[str, Namespace]) -> None:
        self.places = places
        self.cut_off: set[str] = set()
        self._fabric = fabric
        for leaf in LEAVES:
            fabric.ip(f"link add {leaf} type bridge", f"link set {leaf} up")
        for name in places:
            self._connect(name)
        fabric.ip("link add up-r1 type veth peer name up-r2")
        for leaf in LEAVES:
            self._plug(f"up-{leaf}", leaf)

    def limit(self, node: str, *, sends: int = LINK_MBITPS, receives: int = LINK_MBITPS) -> None:
        """What the link of a node carries from now on in each direction."""
        self.places[node].limit("eth0", sends)
        self._fabric.limit(node, receives)

    def limit_uplink(self, mbitps: int) -> None:
        """What the nodes of one leaf can send to those of the other together from now on."""
        for leaf in LEAVES:
            self._fabric.limit(f"up-{leaf}", mbitps)

    def cut(self, node: str, *others: str) -> None:
        """Lets nothing pass any more between a node and the `others`."""
        self.cut_off.add(node)
        those = ", ".join(ADDRESSES[other] for other in others)
        self._filter(f"iifname {node} ip daddr {{ {those} }} drop", f"oifname {node} ip saddr {{ {those} }} drop")

    def lose(self, node: str, percent: int) -> None:
        """Lets so many of a hundred packets get lost on the link of a node, in each direction."""
        some = f"numgen random mod 100 < {percent} drop"
        self._filter(f"iifname {node} {some}", f"oifname {node} {some}")

    def mend(self) -> None:
        """Makes everything healthy."""
        for node in NODES:
            self.limit(node)
        self.limit_uplink(LINK_MBITPS * len(NODES))
        self._filter()

    def _connect(self, name: str) -> None:
        self._fabric.ip(f"link add {name} type veth peer name eth0 netns {self.places[name].pid}")
        self._plug(name, LEAF_OF.get(name, "r1"))
        self.places[name].ip(
            "link set lo up",
            f"link set eth0 mtu {PACKET_BYTES} gso_max_size {PACKET_BYTES} up",  # each packet for itself, as on a wire
            f"address add {ADDRESSES[name]}/24 dev eth0",
        )

    def _plug(self, interface: str, leaf: str) -> None:
        self._fabric.ip(f"link set {interface} mtu {PACKET_BYTES} master {leaf} up")

    def _filter(self, *rules: str) -> None:
        """What the leaves drop from now on, and nothing else."""
        self._fabric.run("nft", "-f", "-", text=FILTER.format(rules="\n        ".join(rules)))


@contextmanager
def new_network() -> Iterator[Network]:
    with ExitStack() as stack:
        fabric = stack.enter_context(new_namespace("unshare", "--user", "--map-root-user"))
        places = {name: stack.enter_context(new_namespace(*fabric.enter)) for name in ADDRESSES}
        yield Network(fabric, places)


class Program:
    """A program of the laboratory, which writes to `log`. Its properties are those of an agent."""

    def __init__(self, process: AnyProcess, log: Path) -> None:
        self._process = process
        self._log = log

    def has_said(self, words: str) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        return words in self._log.read_text()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def children(self) -> list[psutil.Process]:
        """The children of its launcher: ranks, one that stays, and one that comes and goes with idle probes."""
        launcher = psutil.Process(self._process.pid).children()
        return launcher[0].children() if launcher else []

    @property
    def ranks(self) -> list[psutil.Process]:
        """Those of its children that are connected with ranks of other nodes."""
        return [child for child in self.children if is_connected(child.pid)]

    @property
    def bytes_sent(self) -> int:
        """What has left its node since that has a link."""
        lines = Path(f"/proc/{self._process.pid}/net/dev").read_text().splitlines()
        (counters,) = (line.split() for line in lines if line.lstrip().startswith("eth0:"))
        return int(counters[9])


def opened(file: Path) -> str:
    """What an open file of a process is; empty if it was closed meanwhile, which says nothing about the others."""
    try:
        return str(file.readlink())
    except FileNotFoundError:
        return ""


def is_connected(pid: int) -> bool:
    """Whether a process has an established TCP connection; False if it has ended."""
    try:
        files = [target for file in Path(f"/proc/{pid}/fd").iterdir() if (target := opened(file))]
        _, *connections = (line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(line[3] == ESTABLISHED and f"socket:[{line[9]}]" in files for line in connections)


class Laboratory:
    """The fleet on its `network`: a broker, a coordinator, and an agent on every node.

    `directory` takes their logs and databases; `clock` is a library that shifts the clock of whoever loads it.
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
        for node in NODES:
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

    def start_long_sweep(self, node: str) -> Recorded:
        """A sweep whose groups run for a second or more; the ranks of `node` have begun to send to others."""
        sweep, before = self.start_sweep(iterations=30), self.agents[node].bytes_sent

        def sends() -> bool:
            assert sweep.poll() is None, sweep.ended()
            return self.agents[node].bytes_sent > before + MESSAGE_BYTES

        wait_for(sends, f"{node} to send", longest_pause_s=SHORTEST_PAUSE_S)
        return sweep

    @contextmanager
    def halted_in_a_sweep(self, node: str) -> Iterator[Recorded]:
        """A sweep in which the ranks of `node` send to others, and do nothing at all while the context lasts.

        What happens to the network meanwhile happens for certain before their groups have ended.
        """
        going_on = self.start_long_sweep(node)
        ranks: list[psutil.Process] = []

        def has_ranks() -> bool:  # a group may have ended since it sent; the next one follows
            assert going_on.poll() is None, going_on.ended()
            ranks[:] = self.agents[node].ranks
            return bool(ranks)

        wait_for(has_ranks, f"{node} to have ranks", longest_pause_s=SHORTEST_PAUSE_S)
        for rank in ranks:
            rank.suspend()
        try:
            yield going_on
        finally:
            for rank in ranks:
                rank.resume()

    # Programs

    def _start_agent(self, node: str, clock_off_by_s: int = 0, **settings: Any) -> None:
        if node in self.agents:
            self.agents[node].kill()
        ours = {
            "node": node,
            "agent": {"leaf": LEAF_OF[node], "heartbeat_s": HEARTBEAT_S},
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
            "broker": {"url": f"mqtt://{ADDRESSES[COORDINATOR]}"},
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
        return {node["name"] for node in nodes if not node["lost"] and node["plugins"]} == set(NODES)


def printed(command: Recorded) -> Any:
    """The JSON that a command has printed when it has ended."""
    done = command.ended(PATIENCE_S)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="package")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that shifts the wall clock of whoever loads it; see clock.c."""
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, HERE / "clock.c"], check=True)
    return library


@pytest.fixture(scope="package")
def the_laboratory(with_torch: None, tmp_path_factory: pytest.TempPathFactory, clock: Path) -> Iterator[Laboratory]:
    """The one laboratory of all tests here; to be had through `laboratory`."""
    with new_network() as network:
        laboratory = Laboratory(network, tmp_path_factory.mktemp("laboratory"), clock)
        try:
            laboratory.start()
            yield laboratory
        finally:
            laboratory.end()


@pytest.fixture
def laboratory(the_laboratory: Laboratory) -> Laboratory:
    """A laboratory in which everything is healthy and free, whatever the test before did to it."""
    the_laboratory.set_right()
    return the_laboratory
