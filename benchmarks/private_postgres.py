"""A PostgreSQL server of its own for a benchmark, on a Unix socket in a directory that goes with it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.errors import Unavailable

DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def postgres(directory: Path) -> Iterator[str]:
    """Its URL. Root starts it as the user `postgres`, because PostgreSQL refuses root."""
    programs = os.pathsep.join(map(str, [*DEBIAN[::-1], os.environ["PATH"]]))
    if shutil.which("initdb", path=programs) is None:
        raise Unavailable("this needs PostgreSQL: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as place:
        Path(place).chmod(0o777)  # the server's user writes there
        data = Path(place) / "data"
        _as_server(programs, "initdb", "-D", str(data), "-A", "trust", "-U", "postgres", "--locale=C.UTF-8")
        options = f"-c listen_addresses='' -c unix_socket_directories='{place}'"
        _as_server(programs, "pg_ctl", "-D", str(data), "-w", "-l", f"{place}/log", "-o", options, "start")
        try:
            yield f"postgresql://postgres@/postgres?host={place}"
        finally:
            _as_server(programs, "pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")


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
