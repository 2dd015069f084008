"""The stand-in as a process of its own, as whoever started it sees it; nothing that they do holds it up."""

import json
import subprocess
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.fleet import ROOT, interpreter
from benchmarks.kubernetes_standin.access import Role
from benchmarks.kubernetes_standin.faults import Fault
from benchmarks.kubernetes_standin.server import Request

TIMEOUT_S = 30.0


class Files(NamedTuple):
    """With what a user finds the server: a kubeconfig, or the directory of a service account."""

    kubeconfig: Path
    service_account: Path


class Child:
    """Runs for as long as its context lasts, with nodes named node-00000 and on; files go to `directory`."""

    def __init__(self, directory: Path, nodes: int = 0) -> None:
        command = interpreter("-m", "benchmarks.kubernetes_standin", str(directory), "--nodes", str(nodes))
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        ready = json.loads(self._process.stdout.readline())
        self.kubeconfig = Path(ready["kubeconfig"])
        self.url: str = ready["url"]
        self._control = urlsplit(ready["control"]).netloc

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=TIMEOUT_S)

    def requests(self) -> list[Request]:
        """Every request so far, in the order of their coming; their clock is this host's `time.monotonic`."""
        return [Request(**request) for request in self._ask("requests")]

    def order(self, fault: Fault, **more: Any) -> None:
        """Orders a fault; `more` are the fields of an Order."""
        self._ask("faults", {"fault": fault, **more})

    def end_watches(self, *, expired: bool) -> None:
        """Ends all watches, with the event that says 410 or by just closing them."""
        self._ask("watches/end", {"expired": expired})

    def forget(self) -> None:
        """Forgets the past: watches and lists cannot go on from a version before now."""
        self._ask("forget", {})

    def add_user(self, name: str, *roles: Role) -> Files:
        """A user with what ClusterRoles and Roles allow."""
        files = self._ask("users", {"name": name, "roles": roles})
        return Files(Path(files["kubeconfig"]), Path(files["service_account"]))

    def _ask(self, path: str, body: Any = None) -> Any:
        with closing(HTTPConnection(self._control, timeout=TIMEOUT_S)) as connection:
            if body is None:
                connection.request("GET", f"/{path}")
            else:
                connection.request("POST", f"/{path}", json.dumps(body), {"Content-Type": "application/json"})
            return json.load(connection.getresponse())
