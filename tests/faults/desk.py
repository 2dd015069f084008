"""A scheduler for the plugin `script`, and the directory in which it works."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

SCHEDULER = """#!{python} -S
import json, os, pathlib, sys, time

parent, desk, told = os.getppid(), pathlib.Path({desk!r}), json.load(sys.stdin)


def write(word):
    with (desk / "book").open("a") as book:
        book.write(json.dumps([word, told["node"], told["id"], told["after"]]) + "\\n")


def wait(where):
    while (desk / where).exists():
        if os.getppid() != parent:
            sys.exit("the coordinator is gone")
        time.sleep(0.01)


write("called")
wait("before")
state, place = "out" if told["out_of_service"] else "in", desk / told["node"]
if not place.exists() or place.read_text() != state:
    place.write_text(state)
    write("did")
wait("after")
print(told["node"], "is", state)
"""


class Desk:
    """The directory in which the scheduler writes down its calls, and waits if a test says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scheduler = path / "scheduler"
        self.scheduler.write_text(SCHEDULER.format(python=sys.executable, desk=str(path)))
        self.scheduler.chmod(0o755)

    def book(self, word: str, node: str, after: str) -> list[str]:
        """The ids of the transitions for which the scheduler wrote `word`, in order; `after` is the service state."""
        text = (self.path / "book").read_text() if (self.path / "book").exists() else ""
        entries = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
        return [told for said, about, told, state in entries if (said, about, state) == (word, node, after)]

    def state(self, node: str) -> str | None:
        """`in` or `out`; None if the scheduler was never called for the node."""
        place = self.path / node
        return place.read_text() if place.exists() else None

    @contextlib.contextmanager
    def waiting(self, where: str) -> Iterator[None]:
        """The scheduler waits `before` or `after` its work while the context lasts, or until the coordinator ends."""
        (self.path / where).touch()
        try:
            yield
        finally:
            (self.path / where).unlink()
