"""A cluster of real RabbitMQ nodes with the MQTT plugin, on free ports of loopback."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.free_ports import free_port

PROGRAMS = Path("/usr/lib/rabbitmq/bin")
"""Where Debian's package has the programs that do not change to the user rabbitmq."""

STARTED_WITHIN_S = 120.0

CALM = "+sbwt none +sbwtdcpu none +sbwtdio none +S 1:1"
"""Erlang's schedulers otherwise wait for work in a loop, each on a core of its own."""

SETTINGS = """
listeners.tcp = none
mqtt.listeners.tcp.default = 127.0.0.1:{mqtt}
mqtt.allow_anonymous = {anonymous}
log.console = false
cluster_formation.peer_discovery_backend = classic_config
{peers}
"""


class RabbitNode:
    """One node of a cluster. `url` is where it speaks MQTT."""

    def __init__(self, directory: Path, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._directory = directory / name
        self._directory.mkdir()
        self._environment = {
            **environment,
            "RABBITMQ_NODENAME": name,
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self._directory / "data"),
            "RABBITMQ_LOG_BASE": str(self._directory / "log"),
            "RABBITMQ_CONFIG_FILE": str(self._directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._directory / "plugins"),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, peers: list[str], anonymous: str) -> None:
        """Starts it; `wait` returns when it is ready."""
        lines = (f"cluster_formation.classic_config.nodes.{number} = {name}" for number, name in enumerate(peers, 1))
        settings = SETTINGS.format(mqtt=self.port, anonymous=anonymous, peers="\n".join(lines))
        (self._directory / "rabbitmq.conf").write_text(settings)
        (self._directory / "plugins").write_text("[rabbitmq_mqtt].\n")
        with (self._directory / "out").open("wb") as out:
            self._process = subprocess.Popen(
                [PROGRAMS / "rabbitmq-server"],
                env=self._environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> None:
        deadline = time.monotonic() + STARTED_WITHIN_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                assert self._process is not None
                assert self._process.poll() is None, (self._directory / "out").read_text()
                assert time.monotonic() < deadline, (self._directory / "out").read_text()
                time.sleep(0.1)

    def control(self, *arguments: str | Path) -> str:
        """Runs rabbitmqctl."""
        done = subprocess.run(
            [PROGRAMS / "rabbitmqctl", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kill(self) -> None:
        """As if its machine had lost power."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


class RabbitCluster:
    """Nodes that know each other. Each has the accounts of the first; if `open_to_all`, nobody needs one."""

    def __init__(self, directory: Path, count: int, *, open_to_all: bool = False) -> None:
        self._anonymous = str(open_to_all).lower()
        cookie = directory / ".erlang.cookie"
        cookie.write_text("muster-tests")
        cookie.chmod(0o600)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{CALM} -kernel inet_dist_use_interface {{127,0,0,1}}",
        }
        self._epmd = subprocess.Popen(["epmd"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.nodes = [RabbitNode(directory, f"rabbit{number}@localhost", environment) for number in range(count)]

    def start(self) -> None:
        """Starts all at once."""
        names = [node.name for node in self.nodes]
        for node in self.nodes:
            node.start(names, self._anonymous)
        for node in self.nodes:
            node.wait()
        self.nodes[0].control("await_online_nodes", str(len(names)))

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()
        self._epmd.kill()
        self._epmd.wait()
