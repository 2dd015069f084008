"""Network namespaces, which programs of the tests run in.

They have no names, and whatever runs in them ends with the tests, so that nothing of them is left behind even when
these are killed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.waiting import PATIENCE_S


def executable(name: str) -> str:
    """Where a program is; Debian keeps some out of users' PATH."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert found, f"{name} is missing; .ci/system-packages says which package has it"
    return found


class Namespace:
    """A network of its own. `enter` goes before the command line of a program that is to run there."""

    def __init__(self, pid: int, *, has_users: bool = True) -> None:
        self.pid = pid
        users = ["--user", "--preserve-credentials"] if has_users else []
        self.enter = ["nsenter", f"--target={pid}", *users, "--net"]

    def run(self, program: str, *arguments: str, text: str = "") -> None:
        """Runs a program to its end, with `text` as its input."""
        command = [*self.enter, executable(program), *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}\n{text}"

    def ip(self, *commands: str) -> None:
        self.run("ip", "-batch", "-", text="\n".join(commands))

    def limit(self, interface: str, mbitps: int) -> None:
        """What an interface sends from now on at most."""
        bucket = ("rate", f"{mbitps}mbit", "burst", "64kb", "limit", "8mb")
        self.run("tc", "qdisc", "replace", "dev", interface, "root", "tbf", *bucket)


@contextmanager
def new_namespace(*enter: str) -> Iterator[Namespace]:
    """A network with nothing in it, while the context lasts; with `enter` in that user namespace.

    `cat` holds it open, which waits for input, and so ends with this process at the latest.
    """
    with subprocess.Popen(
        [*enter, "unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as holder:
        assert holder.stdin and holder.stdout and holder.stderr
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        is_there = holder.stdout.readline()
        assert is_there, f"these tests need user namespaces: {holder.stderr.read().decode()}"
        yield Namespace(holder.pid, has_users=bool(enter))
