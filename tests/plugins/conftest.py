"""Processes that measure for the tests, and the stub of NVML that some of them load."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from muster import Device, Rendezvous

HERE = Path(__file__).parent


class MeasuringChild:
    """The other end of a child of `measuring_child.py`."""

    def __init__(self, lines: IO[str]) -> None:
        self._lines = lines

    def ask(self, do: str, *nodes: dict[str, Any], **request: Any) -> Any:
        """What the child answers; each of `nodes` is the settings of one node that takes part."""
        self._lines.write(json.dumps({"do": do, "nodes": nodes or [{}], **request}) + "\n")
        self._lines.flush()
        return json.loads(self._lines.readline())


class PreparedChildren:
    """A process that has imported what checks need, and forks for each child."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    @contextmanager
    def child(self, **environment: str) -> Iterator[MeasuringChild]:
        """A child with these variables in its environment, which is killed at the end."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._requests, [json.dumps(environment).encode()], [theirs.fileno()])
        with ours, ours.makefile("rw", encoding="utf-8") as lines:
            pid = int(lines.readline())
            try:
                yield MeasuringChild(lines)
            finally:
                os.kill(pid, signal.SIGKILL)


@contextmanager
def prepared_children(*arguments: str, **environment: str) -> Iterator[PreparedChildren]:
    """Starts the process that forks; variables that a program reads only while it starts must be given here."""
    requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", HERE / "measuring_child.py", str(theirs.fileno()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=os.environ | environment,
        )
    with process, requests:
        yield PreparedChildren(requests)


@pytest.fixture(scope="session")
def torch_child(live: None) -> Iterator[MeasuringChild]:
    """A child that has imported torch and forks for each run, so that only the first test waits for the import."""
    with prepared_children("--torch", GLOO_SOCKET_IFNAME="lo") as children, children.child() as child:
        yield child


@pytest.fixture(scope="session")
def children_with_stub(nvml_stub: Path) -> Iterator[PreparedChildren]:
    """Children for which NVML is the stub."""
    with prepared_children(LD_LIBRARY_PATH=str(nvml_stub)) as children:
        yield children


@pytest.fixture(scope="session")
def children_without_nvml(live: None) -> Iterator[PreparedChildren]:
    """Children for which no NVML is installed."""
    with prepared_children() as children:
        yield children


class StubbedNode:
    """A node with NVML's stub: `state` is what NVML says, `ask` what muster makes of it."""

    def __init__(self, child: MeasuringChild, state_file: Path, pci_root: Path) -> None:
        self._child = child
        self._state_file = state_file
        self._pci_root = pci_root

    def state(self, **values: Any) -> None:
        """Replaces what NVML says; a key `x_1` is about device 1. Written at once, so that no call sees a half."""
        half = self._state_file.with_suffix(".new")
        half.write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="utf-8")
        half.replace(self._state_file)

    def plug(self, *addresses: str, vendor: str = "0x10de", kind: str = "0x030200") -> None:
        """Puts devices on the PCI bus."""
        for address in addresses:
            entry = self._pci_root / address
            entry.mkdir(parents=True)
            (entry / "vendor").write_text(vendor + "\n", encoding="ascii")
            (entry / "class").write_text(kind + "\n", encoding="ascii")

    def ask(
        self, do: str, expected_gpus: int | None = None, plugins: dict[str, Any] | None = None, **request: Any
    ) -> Any:
        sections = {"nvml": {"pci_root": str(self._pci_root)}, **(plugins or {})}
        return self._child.ask(do, {"node": "sim", "expected_gpus": expected_gpus, "plugins": sections}, **request)


@pytest.fixture
def stubbed_node(children_with_stub: PreparedChildren, tmp_path: Path) -> Iterator[StubbedNode]:
    """A node whose NVML is the stub, with two healthy devices to begin with and an empty PCI bus."""
    state_file = tmp_path / "state"
    state_file.write_text("devices=2\n", encoding="utf-8")
    with children_with_stub.child(STUB_NVML_STATE=str(state_file)) as child:
        yield StubbedNode(child, state_file, tmp_path / "pci")


@pytest.fixture
def node_without_nvml(children_without_nvml: PreparedChildren, tmp_path: Path) -> Iterator[StubbedNode]:
    """A node on which no NVML is installed, with an empty PCI bus."""
    with children_without_nvml.child() as child:
        yield StubbedNode(child, tmp_path / "state", tmp_path / "pci")


@pytest.fixture(scope="session")
def simulated_node() -> Callable[..., dict[str, Any]]:
    """The settings of a node with simulated devices, one unless the test says otherwise."""
    return lambda **table: {"plugins": {"simulated": {"enabled": True, "devices": 1, **table}}}


CodesOf = Callable[[Any], list[tuple[str, str, int | None]]]


@pytest.fixture
def codes() -> CodesOf:
    """Code, severity and device of each finding of an answer."""
    return lambda answer: [(each["code"], each["severity"], each["device"]) for each in answer["findings"]]


@dataclass(frozen=True)
class PlainContext:
    """A run's surroundings for a check that needs nothing but a directory and a deadline."""

    scratch: Path
    timeout_s: float
    node: str = "node-1"
    devices: tuple[Device, ...] = ()
    expected_gpus: int | None = None
    machine_type: str | None = None

    def progress(self, text: str) -> None:
        pass

    def rendezvous(self) -> Rendezvous:
        raise AssertionError("a run of scope NODE has no rendezvous")


@pytest.fixture
def bare_context(tmp_path: Path) -> Callable[..., PlainContext]:
    """The context of a run in this process, with a deadline of a minute unless the test says otherwise."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return lambda timeout_s=60.0: PlainContext(scratch, timeout_s)
