"""`muster demo`: a small fleet on this host with two injected faults; muster must name exactly the faulty nodes.

Broker, coordinator and agents are real processes, and the checks do real work on the CPU. Only the devices and their
faults are simulated. Every step is a function of the same shape: it says what it waits for, and waits.
"""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from muster.client import Client, local_url, page_url
from muster.config import HttpSettings
from muster.errors import Unavailable
from muster.local_token import find_token
from muster.secret_file import read_secret
from muster.terminal import line_width, say
from muster_coordinator.local import processes
from muster_coordinator.local.demo_plan import (
    BACKGROUND_CHECKS,
    FAULT_TEXTS,
    SWEEP_CHECK,
    SWEEP_PARAMS,
    Addresses,
    DemoPlan,
    agent_settings,
    at_once,
    coordinator_directory,
    coordinator_settings,
    named,
)
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.node_list import node_list
from muster_coordinator.views.sweeps.progress import News
from muster_coordinator.views.sweeps.result import sweep_report

QUIET_S = 240.0
"""The longest time without a new line. A busy host may take minutes for one step, and longer than this for them all."""

POLL_S = 0.3


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The JSON of `muster demo`: the injected faults, the codes of the named nodes, and whether both match."""

    ok: bool
    injected: dict[str, str]
    named: dict[str, list[str]]
    nodes: list[dict[str, Any]]
    sweep: dict[str, Any] | None
    duration_s: float


class Demo:
    """One run of the demo. The fleet lives as long as the context; `directory` gets its logs and databases.

    `config` is a settings file that every part reads. `http` are its settings of the API; without an address in the
    file, the API gets any free one.
    """

    def __init__(
        self, plan: DemoPlan, directory: Path, config: Path | None, http: HttpSettings, out: TextIO = sys.stdout
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._options = [] if config is None else ["--config", str(config)]
        self._out = out
        self._stack = ExitStack()
        listen = http.listen if "listen" in http.model_fields_set else self._free_address()
        self._addresses = Addresses(broker=self._free_address(), http=listen)
        self._token_file = http.token_file
        self._client = Client(self.url)
        self._parts: list[processes.LocalProcess] = []
        self._started = time.monotonic()
        self._quiet = asyncio.Timeout(None)

    @property
    def url(self) -> str:
        """The URL of the demo's API."""
        return local_url(self._addresses.http)

    @property
    def data_dir(self) -> Path:
        """The directory with the data and token of the demo's coordinator."""
        return coordinator_directory(self._directory)

    async def __aenter__(self) -> "Demo":
        return self

    async def __aexit__(self, *_: object) -> None:
        await processes.stop(self._parts)
        self._stack.close()

    async def run(self) -> DemoOutcome:
        """Runs the whole demo and prints each step. Raises Unavailable if it stands still or a part dies."""
        try:
            async with self._quiet:
                self._introduce()
                await self._start_coordinator()
                await self._start_agents()
                await self._check_in_the_background()
                return await self._conclude(await self._sweep())
        except TimeoutError:
            raise Unavailable(
                f"the demo has stood still for {QUIET_S:g} s: this host is too busy, or a part hangs; try again when "
                f"the host has less to do, or look at the logs in {self._directory}"
            ) from None

    def _introduce(self) -> None:
        self._line(
            f"muster demo: {len(self._plan.nodes)} nodes on this host. Their devices are SIMULATED; matrix products, "
            "training and collectives run for real, on the CPU."
        )
        for node, fault in self._plan.injected.items():
            self._line(f"  put into {node}: {FAULT_TEXTS[fault]} (simulated)")

    async def _start_coordinator(self) -> None:
        if await self._coordinator_answers():  # the demo would start its sweep there
            raise Unavailable(f"a coordinator runs at {self.url} already; stop it, or change http.listen in --config")
        await self._start("coordinator", coordinator_settings(self._addresses, self._directory))
        if self._token_file is not None:
            self._client = Client(self.url, read_secret(self._token_file, "http.token_file"))
        while not await self._coordinator_answers():
            self._check_parts()
            await asyncio.sleep(POLL_S)
        if self._token_file is None:
            self._client = Client(self.url, find_token(self.data_dir, self.url))
        self._step(f"broker and coordinator are up: {self.url}")
        self._line(f"           the fleet in a browser: {page_url(self._addresses.http)}")

    async def _start_agents(self) -> None:
        for node in self._plan.nodes:
            await self._start(node, agent_settings(node, self._plan, self._addresses, self._directory))
        await self._until("agents have joined", lambda node: bool(node.devices))

    async def _check_in_the_background(self) -> None:
        self._step(f"background checks: {', '.join(BACKGROUND_CHECKS)}")
        wanted = set(BACKGROUND_CHECKS)
        await self._until("nodes have run them", lambda node: wanted <= set(node.checks))
        for node in await self._nodes():
            for finding in node.findings:
                self._line(f"           {node.name} {node.health}: {finding.summary} ({finding.code})")

    async def _sweep(self) -> SweepRecord:
        parallel = at_once(cores=len(os.sched_getaffinity(0)))
        body = {"check": SWEEP_CHECK, "strategy": "pairs", "params": SWEEP_PARAMS, "max_parallel": parallel}
        sweep = SweepRecord.model_validate(await asyncio.to_thread(self._client.post, "sweeps", body=body))
        self._step(f"sweep of {len(sweep.nodes)} nodes in pairs: {SWEEP_CHECK}")
        news = News()
        while True:
            for line in news.lines(sweep):
                self._line(f"           {line}")
            if sweep.ended_at is not None:
                return sweep
            await asyncio.sleep(POLL_S)
            self._check_parts()
            sweep = SweepRecord.model_validate(await asyncio.to_thread(self._client.get, "sweeps", sweep.id))

    async def _conclude(self, sweep: SweepRecord) -> DemoOutcome:
        nodes = await self._nodes()
        as_served = [node.model_dump(mode="json") for node in nodes]
        self._step("what the fleet looks like now")
        self._line(f"\n{sweep_report(sweep)}\n\n{node_list(as_served, time.time(), line_width())}\n")
        codes = named(nodes, sweep)
        outcome = DemoOutcome(
            ok=set(codes) == set(self._plan.injected),
            injected=self._plan.injected,
            named=codes,
            nodes=as_served,
            sweep=sweep.model_dump(mode="json"),
            duration_s=round(time.monotonic() - self._started, 1),
        )
        self._verdict(outcome)
        return outcome

    def _verdict(self, outcome: DemoOutcome) -> None:
        for node, codes in outcome.named.items():
            fault = self._plan.injected.get(node, "nothing was put into it")
            self._line(f"named {node} ({fault}): {', '.join(codes)}")
        for node in sorted(set(self._plan.injected) - set(outcome.named)):
            self._line(f"missed {node} ({self._plan.injected[node]})")
        said = "named exactly the nodes with a fault" if outcome.ok else "did NOT name exactly the nodes with a fault"
        self._line(f"muster {said}, in {outcome.duration_s:.0f} s")

    async def _start(self, name: str, settings: dict[str, Any]) -> None:
        log = self._stack.enter_context((self._directory / f"{name}.log").open("ab"))
        command = "coordinator" if name == "coordinator" else "agent"
        self._parts.append(await processes.start(name, [command, *self._options], processes.environment(settings), log))

    async def _until(self, what: str, done: Callable[[NodeView], bool]) -> None:
        """Waits until `done` holds for every node, and prints the number of nodes whenever it changes."""
        shown = 0
        while shown < len(self._plan.nodes):
            self._check_parts()
            count = sum(map(done, await self._nodes()))
            if count != shown:
                self._step(f"{count} of {len(self._plan.nodes)} {what}")
                shown = count
            await asyncio.sleep(POLL_S)

    async def _coordinator_answers(self) -> bool:
        try:
            await self._nodes()
        except Unavailable:
            return False
        return True

    async def _nodes(self) -> list[NodeView]:
        answer = await asyncio.to_thread(self._client.pages, "nodes")
        return [NodeView.model_validate(item) for item in answer["items"]]

    def _check_parts(self) -> None:
        for part in self._parts:
            if part.process.returncode is not None:
                raise Unavailable(f"{part.name} ended early; its log is {self._directory / part.name}.log")

    def _free_address(self) -> str:
        holder, address = held_address()
        self._stack.enter_context(holder)
        return address

    def _step(self, text: str) -> None:
        self._line(f"{time.monotonic() - self._started:6.1f} s  {text}")

    def _line(self, text: str) -> None:
        say(text, file=self._out)
        self._quiet.reschedule(asyncio.get_running_loop().time() + QUIET_S)


def held_address() -> tuple[socket.socket, str]:
    """A free address of this host, and the socket that keeps it for a server as long as it is open.

    Otherwise any process may be given the port until the server listens, which takes a busy host half a minute. Only
    servers with SO_REUSEADDR, such as those of asyncio, can listen on a port that a socket holds.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder, f"127.0.0.1:{holder.getsockname()[1]}"
