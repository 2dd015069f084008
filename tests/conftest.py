"""What tests of every part share."""

import asyncio
import contextlib
import gc
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from benchmarks.free_ports import free_port
from benchmarks.private_postgres import DEBIAN, PrivatePostgres, private_postgres
from tests import brokers
from tests.collecting import one_first
from tests.muster_process import run_muster, started
from tests.waiting import wait_for
from xdist.scheduler import LoadScopeScheduling

# What tests share says by which values it failed, as they do.
pytest.register_assert_rewrite(
    "tests.coordinator", "tests.faults", "tests.hostile", "tests.plugins", "tests.simulation"
)

# How long an example takes says how busy the machine is, and nothing about what is tested.
hypothesis.settings.register_profile("any load", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("any load")

SHARED = (
    "tests/network/",
    "tests/plugins/checks/",
    "tests/plugins/schedulers/kubernetes/whole/",
    "tests/plugins/schedulers/slurm/",
    "tests/faults/",
)
"""Directories whose tests share real processes that take long to start: one worker runs all of such a directory."""

APART = tuple(
    f"tests/faults/test_{name}.py" for name in ("clocks", "disks", "exhausted", "missing_library", "quarantine")
)
"""Files there that start a fleet of their own: any worker may run one."""

LONG = (*SHARED, "tests/hostile/", "tests/benchmarks/")
"""These run first: at the end, one worker would run such a unit while the others have nothing left to do."""


COLLECT_AFTER = (20_000, 20, 20)
"""Threshold of Python's search for cyclic garbage. With its own, that was a tenth of the processor time of a worker."""


NEED_TORCH = {"torch_child", "with_torch"}
"""The fixtures whose tests get the marker `torch`."""


def pytest_xdist_make_scheduler(config, log):
    """Gives a worker all tests of a file, or of a directory whose tests share a fleet."""
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _unit_of
    return scheduler


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Spares the garbage collector what stays until the end: thousands of tests, and the modules that they import.

    Else it looks through all of that again and again, which is a tenth of the processor time of `make quick`.
    """
    gc.disable()
    try:
        with one_first(session.config):
            return (yield)
    finally:
        _make_the_generator_of_hypothesis()
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)
        gc.enable()


def _unit_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return file if file in APART else next((directory for directory in SHARED if file.startswith(directory)), file)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by marker
def pytest_collection_modifyitems(items):
    """Runs what takes long first; marks the tests that measure in a process with torch."""
    for item in items:
        if not NEED_TORCH.isdisjoint(item.fixturenames):
            item.add_marker(pytest.mark.torch)
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.hookimpl(tryfirst=True)  # before fixtures that need torch themselves
def pytest_runtest_setup(item):
    """Skips what needs torch where there is none. CI installs torch, so there the test fails; see CONTRIBUTING.md."""
    if item.get_closest_marker("torch") is not None and find_spec("torch") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no torch: pip install 'gpu-muster[torch]'")


def pytest_configure():
    # looptime asks for the event loop of tests that have none; asyncio would make one that nobody closes.
    asyncio.set_event_loop(None)
    # A shell's background job ignores Ctrl-C, and so would every program that the tests start from there.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure():
    for interpreter in started:
        interpreter.end()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    """Keeps the settings of whoever runs the tests out of them."""
    for variable in [name for name in os.environ if name.startswith("MUSTER_")]:
        monkeypatch.delenv(variable)


@pytest.fixture(scope="session")
def live() -> None:
    """For what starts processes, opens connections or sleeps. `make quick` leaves out the tests that use it.

    A fixture takes it as a parameter, a test has `@pytest.mark.usefixtures("live")`.
    """


@pytest.fixture(scope="session")
def with_torch() -> None:
    """For fixtures that measure with torch: it marks their tests with `torch`."""


@hypothesis.settings(max_examples=1, database=None)
@hypothesis.given(hypothesis.strategies.none())
def _make_the_generator_of_hypothesis(_: None) -> None:
    """The first property makes it. After the freeze, hypothesis would see no object that refers to it, and warn."""


@pytest.fixture
def muster(live: None) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own: `muster("plugin", "list", env={...})`."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return run_muster(*arguments, env={**os.environ, **(env or {})})

    return run


OPEN_TO_ALL = "allow_anonymous true\nmax_queued_messages 0\nset_tcp_nodelay true"


class Mosquitto:
    """A real broker on loopback. It keeps its port over `stop` and `start`, and nothing else.

    `settings` are further lines of its settings.
    """

    def __init__(self, directory: Path, settings: str, program: Path) -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._config = directory / "mosquitto.conf"
        self._config.write_text(f"listener {self.port} 127.0.0.1\nuser root\n{settings}\n")
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen([self._program, "-c", self._config], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert self._process.poll() is None, "Mosquitto has ended"
                assert time.monotonic() < deadline, "Mosquitto does not listen"
                time.sleep(0.01)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """Waits until a condition gives something true, and gives that: `eventually(condition, "what it is")`."""
    return wait_for


@pytest.fixture(scope="session", params=["installed", "newer"])
def mosquitto_program(live: None, request: pytest.FixtureRequest) -> Path:
    """Each Mosquitto that muster is tested with: the installed one and, if that is older, the one of Debian 13."""
    if request.param == "installed":
        return brokers.installed()
    if brokers.version_of(brokers.installed()) >= brokers.NEWER_SINCE:
        pytest.skip("the installed Mosquitto is as new")
    if not brokers.NEWER.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no newer Mosquitto: run .ci/newer-mosquitto")
    return brokers.NEWER


@pytest.fixture(scope="session")
def new_mosquitto(live, tmp_path_factory):
    """Makes brokers that run while their context lasts; `program` is the installed Mosquitto if none is given."""

    @contextlib.contextmanager
    def run(settings: str = OPEN_TO_ALL, program: Path | None = None):
        broker = Mosquitto(tmp_path_factory.mktemp("mosquitto"), settings, program or brokers.installed())
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()

    return run


@pytest.fixture
def mosquitto(new_mosquitto):
    """A running Mosquitto: `.url`, `.port`, `stop()` as if its power went, `start()` on the same port."""
    with new_mosquitto() as broker:
        yield broker


@pytest.fixture(scope="module")
def postgres(live: None) -> Iterator[PrivatePostgres]:
    """A running PostgreSQL. Where `CI` is set, it is a failure if the server or its driver is not installed."""
    programs = os.pathsep.join(map(str, [*DEBIAN, os.environ["PATH"]]))
    is_there = shutil.which("initdb", path=programs) is not None and find_spec("asyncpg") is not None
    if not is_there and not os.environ.get("CI"):
        pytest.skip("needs PostgreSQL and asyncpg")
    with private_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mischief(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for PYTHONPATH with the plugin that misbehaves, and one that cannot be imported."""
    site = tmp_path_factory.mktemp("mischief")
    shutil.copy(Path(__file__).parent / "faults" / "muster_mischief.py", site)
    (site / "muster_ruin.py").write_text("raise SystemExit('this plugin ends whoever imports it')\n")
    about = site / "muster_mischief-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: muster-mischief\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[muster]\nmischief = muster_mischief\nruin = muster_ruin\n")
    return site


@pytest.fixture(scope="session")
def nvml_stub(live: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a libnvidia-ml.so.1 that says what a state file tells it to; see plugins/nvml_stub/nvml.c."""
    library = tmp_path_factory.mktemp("nvml_stub") / "libnvidia-ml.so.1"
    source = Path(__file__).parent / "plugins" / "nvml_stub" / "nvml.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source], check=True)
    return library.parent
