"""A real S3 server, that of moto, which tests kill and start again."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import obstore
import pytest
from benchmarks.free_ports import free_port
from obstore.store import from_url
from tests.waiting import wait_for

SECRET = "wJalrXUtnFEMI-not-a-real-one"

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "not-a-real-key-id", "AWS_SECRET_ACCESS_KEY": SECRET}
"""Variables with which clients find credentials; the server takes any."""


class S3Server:
    """moto's S3 server on a port of its own."""

    def __init__(self) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and makes the empty bucket `kept`: the server forgets everything when it ends."""
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", self.url.rpartition(":")[2]]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self._makes_a_bucket, "the S3 server")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stored(self) -> list[str]:
        """The keys of all objects in the bucket, sorted."""
        store = from_url("s3://kept", config={"endpoint": self.url}, client_options={"allow_http": True})
        return sorted(item["path"] for page in obstore.list(store) for item in page)

    def read(self, key: str) -> str:
        """The object, read with the credentials of this process."""
        store = from_url("s3://kept", config={"endpoint": self.url}, client_options={"allow_http": True})
        return bytes(obstore.get(store, key).bytes()).decode()

    def _makes_a_bucket(self) -> bool:
        with suppress(OSError):
            asked = urllib.request.Request(f"{self.url}/kept", method="PUT")
            return bool(urllib.request.urlopen(asked, timeout=10).status == 200)
        return False


@contextmanager
def running_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """The server, and its credentials in the environment of the test."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    server = S3Server()
    server.start()
    try:
        yield server
    finally:
        server.kill()
