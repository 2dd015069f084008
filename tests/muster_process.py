"""The command `muster` as a process that starts quickly: an interpreter that has imported everything forks for it."""

import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

PROGRAM = Path(__file__).with_name("prepared_interpreter.py")
READ_AT_THE_START = ("PYTHON", "LANG", "LC_")
"""Variables with these names are read while an interpreter starts; a forked one would not heed them."""


class Prepared:
    """The interpreter that forks. `used_s` is the processor time of all commands that have ended."""

    used_s = 0.0

    def __init__(self) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def end(self) -> None:
        self.requests.close()
        self._process.wait()


prepared = functools.cache(Prepared)


class MusterProcess:
    """`muster <arguments>`, with the methods of `subprocess.Popen` that tests use. Output that is not given is dropped."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
        new_session: bool = False,
    ) -> None:
        env = {**os.environ} if env is None else {**env}
        assert not changed_at_the_start(env), "a forked interpreter would not heed these variables"
        request = {"arguments": arguments, "env": env, "cwd": str(cwd or Path.cwd()), "new_session": new_session}
        self._status, theirs = os.pipe()
        with Path(os.devnull).open("r+b") as nothing:
            fds = [each.fileno() for each in (nothing, stdout or nothing, stderr or nothing)]
            socket.send_fds(prepared().requests, [json.dumps(request).encode()], [*fds, theirs])
        os.close(theirs)
        self.pid = int(self._read())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("muster", timeout or 0)
            code, used = self._read().split()
            self.returncode = int(code)
            prepared().used_s += float(used)
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            more = os.read(self._status, 1)
            assert more, "the prepared interpreter has ended"
            line += more
        return line.decode()


def run_muster(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, by a new interpreter where `env` has what is read only while one starts."""
    if changed_at_the_start(os.environ if env is None else env):
        return subprocess.run(
            [sys.executable, "-m", "muster", *arguments],
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = MusterProcess(*arguments, env=env, cwd=cwd, stdout=stdout, stderr=stderr)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        texts = [_text(each) for each in (stdout, stderr)]
    return subprocess.CompletedProcess(["muster", *arguments], process.wait(), *texts)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


def changed_at_the_start(env: Mapping[str, str]) -> set[str]:
    """The variables in which `env` differs from what the prepared interpreter was started with."""
    names = {name for name in {*env, *os.environ} if name.startswith(READ_AT_THE_START)}
    return {name for name in names if env.get(name) != os.environ.get(name)}
