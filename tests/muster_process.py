"""The command `muster` as a process that starts quickly: an interpreter that has imported everything forks for it."""

import contextlib
import errno
import functools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NoReturn, TypeAlias

from tests.waiting import can_be_read

PROGRAM = Path(__file__).with_name("prepared_interpreter.py")

ENVIRONMENT = dict(os.environ)
"""As it was before any test: what a test changes is for its own commands, and not for those of tests after it."""

READ_AT_THE_START = ("PYTHON", "LANG", "LC_", "LD_")
"""Variables with these names are read while a program starts; a forked one heeds only PYTHONPATH."""

RUN = ENVIRONMENT.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
"""What all workers of a run have in common, and no other run."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Only a process with a single thread can be forked; torch and numpy start others while they are imported."""

TORCH = ("torch", "torch.distributed", "torch._dynamo")
"""What runs with torch import, DistributedDataParallel included."""


class Prepared:
    """The interpreter that forks. `used_s` is the processor time of all its commands that have ended."""

    used_s = 0.0

    def __init__(self, *imports: str) -> None:
        self.commands: list[MusterProcess] = []
        self._requests, self.pid = _connected(imports)

    def ask(self, request: Mapping[str, object], fds: list[int]) -> None:
        """Asks for a command; AssertionError if the interpreter has ended."""
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], fds)
        except ConnectionError:
            self.fail()

    def fail(self) -> NoReturn:
        """Raises AssertionError: what the interpreter ended with is on the stderr of these tests."""
        raise AssertionError("the prepared interpreter has ended; stderr says how")

    @property
    def address(self) -> bytes:
        """Where the interpreters of other workers are asked for."""
        return bytes(self._requests.getpeername())

    @property
    def environment(self) -> bytes:
        """What others see in it, such as a test that looks for the processes of a cluster."""
        return Path(f"/proc/{self.pid}/environ").read_bytes()

    def end(self) -> None:
        """Ends it, and before it what a test has left."""
        for command in self.commands:
            command.kill()
        self._requests.close()


def _connected(imports: tuple[str, ...]) -> tuple[socket.socket, int]:
    """A connection to an interpreter for this worker, with its process id.

    All workers of a run have theirs forked from one, as the imports take seconds: whoever comes first starts it.
    """
    address = f"\0muster-tests-{RUN}-{'-'.join(imports)}"
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        is_ours = _start(address, imports)
        with contextlib.suppress(ConnectionError):
            connection.connect(address)
            if pid := connection.recv(32):
                return connection, int(pid)
        connection.close()
        # Another worker's may have ended with that worker just now, or does not listen yet.
        assert not is_ours, "the prepared interpreter did not start; stderr says why"


def _start(address: str, imports: tuple[str, ...]) -> bool:
    """Starts the interpreter that forks for all workers, unless another worker has: only one can have the address."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            listener.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        listener.listen(64)
        subprocess.run(
            [sys.executable, PROGRAM, str(listener.fileno()), *imports],
            env=ENVIRONMENT | ONE_THREAD,
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return True


@functools.cache
def prepared(*imports: str) -> Prepared:
    """The one that has imported muster and `imports`, once for this process and all its tests."""
    started.append(Prepared(*imports))
    return started[-1]


started: list[Prepared] = []
"""All there are: for whoever adds up what they cost, and ends them."""


class MusterProcess:
    """`muster <arguments>`, with the methods of `subprocess.Popen` that tests use.

    Output for which there is no file is dropped. `imports` are modules that its runs would import. `network_of` is the
    process in whose network namespace it runs. `module` is the program, if not muster.
    """

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
        imports: tuple[str, ...] = (),
        network_of: int | None = None,
        module: str = "muster",
    ) -> None:
        self._prepared = prepared(*imports)
        env = {**os.environ} if env is None else {**env}
        assert not changed_at_the_start(env), "a forked interpreter would not heed these variables"
        request = {
            "module": module,
            "arguments": arguments,
            "env": env,
            "cwd": str(cwd or Path.cwd()),
            "network_of": network_of,
            "open_files": resource.getrlimit(resource.RLIMIT_NOFILE),
        }
        self._status, theirs = os.pipe()
        with Path(os.devnull).open("r+b") as nothing:
            fds = [each.fileno() for each in (nothing, stdout or nothing, stderr or nothing)]
            try:
                self._prepared.ask(request, [*fds, theirs])
            finally:
                os.close(theirs)
        self.pid = int(self._read())
        self.returncode: int | None = None
        self._prepared.commands.append(self)

    def poll(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not can_be_read(self._status, timeout):
                raise subprocess.TimeoutExpired("muster", timeout or 0)
            code, used = self._read().split()
            self.returncode = int(code)
            self._prepared.used_s += float(used)
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
            if not more:
                self._prepared.fail()
            line += more
        return line.decode()


AnyProcess: TypeAlias = MusterProcess | subprocess.Popen[bytes]


def start_muster(
    *arguments: str, env: Mapping[str, str], stderr: IO[bytes], imports: tuple[str, ...] = ()
) -> AnyProcess:
    """Starts a command, by a new interpreter where `env` has what is read only while one starts."""
    if changed_at_the_start(env) or has_sitecustomize(env):
        command = [sys.executable, "-m", "muster", *arguments]
        return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=stderr)
    return MusterProcess(*arguments, env=env, stderr=stderr, imports=imports)


class Recorded(MusterProcess):
    """The same with its output in files, which can be read while it runs."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        imports: tuple[str, ...] = (),
        network_of: int | None = None,
        module: str = "muster",
    ) -> None:
        self._files = stdout, stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  see drop
        super().__init__(
            *arguments,
            env=env,
            cwd=cwd,
            stdout=stdout,
            stderr=stderr,
            imports=imports,
            network_of=network_of,
            module=module,
        )

    @property
    def stderr(self) -> str:
        """What it has written so far."""
        return _text(self._files[1])

    def ended(self, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """What it came to, when it has ended; it is killed if it takes longer."""
        try:
            code = self.wait(timeout)
            return subprocess.CompletedProcess(["muster"], code, *map(_text, self._files))
        finally:
            self.drop()

    def drop(self) -> None:
        """Kills it if it runs, and forgets its output."""
        self.kill()
        self.wait()
        for file in self._files:
            file.close()


def run_muster(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, by a new interpreter where `env` has what is read only while one starts."""
    if not changed_at_the_start(os.environ if env is None else env):
        return Recorded(*arguments, env=env, cwd=cwd).ended(timeout)
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


def _text(file: IO[bytes]) -> str:
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode().replace("\r\n", "\n")


def changed_at_the_start(env: Mapping[str, str]) -> set[str]:
    """The variables in which `env` differs from what the prepared interpreter was started with."""
    names = {name for name in {*env, *ENVIRONMENT} if name.startswith(READ_AT_THE_START)} - {"PYTHONPATH"}
    return {name for name in names if env.get(name) != ENVIRONMENT.get(name)}


def has_sitecustomize(env: Mapping[str, str]) -> bool:
    """Whether PYTHONPATH has a module that Python imports while it starts."""
    directories = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    return any(Path(directory, "sitecustomize.py").exists() for directory in directories)
