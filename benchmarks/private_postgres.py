"""A PostgreSQL server of its own for a benchmark or test, on a Unix socket in a directory that goes with it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from muster.errors import Unavailable

DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


class PrivatePostgres:
    """A server that can be stopped and started again. Its files are below `place`; `url` is that of its database."""

    def __init__(self, place: Path, programs: str) -> None:
        self.url = f"postgresql://postgres@/postgres?host={place}"
        self._place = place
        self._programs = programs
        self._numbers = count(1)
        _as_server(programs, "initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--locale=C.UTF-8")

    def start(self) -> None:
        """Returns when it takes connections."""
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._place}'"
        self._control("-l", f"{self._place}/log", "-o", options, "start")

    def new_database(self) -> str:
        """The URL of a further, empty database."""
        name = f"d{next(self._numbers)}"
        _as_server(self._programs, "createdb", "-h", str(self._place), "-U", "postgres", name)
        return self.url.replace("/postgres?", f"/{name}?")

    def stop(self, mode: str = "immediate") -> None:
        """Ends all connections at once; with the mode `immediate` as in a crash, with `fast` in an orderly way."""
        self._control("-m", mode, "stop")

    def _control(self, *arguments: str) -> None:
        _as_server(self._programs, "pg_ctl", "-D", self._data, "-w", *arguments)

    @property
    def _data(self) -> str:
        return str(self._place / "data")


@contextmanager
def private_postgres() -> Iterator[PrivatePostgres]:
    """A server that runs. Root starts it as the user `postgres`, because PostgreSQL refuses root."""
    programs = os.pathsep.join(map(str, [*DEBIAN[::-1], os.environ["PATH"]]))
    if shutil.which("initdb", path=programs) is None:
        raise Unavailable("this needs PostgreSQL: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as place:
        Path(place).chmod(0o777)  # the server's user writes there
        server = PrivatePostgres(Path(place), programs)
        server.start()
        try:
            yield server
        finally:
            with suppress(Unavailable):  # it was stopped
                server.stop()


def _as_server(programs: str, *command: str) -> None:
    user = pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else None
    done = subprocess.run(
        [shutil.which(command[0], path=programs) or command[0], *command[1:]],
        user=user,
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
    )
    if done.returncode:
        raise Unavailable(f"{command[0]} has failed: {done.stderr.strip()}")
