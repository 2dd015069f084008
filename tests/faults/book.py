"""The book of a run, from which tests learn which processes it had and whether they are gone."""

from pathlib import Path

from tests.alive import is_alive
from tests.waiting import wait_for


class Book:
    """The directory into which the processes of a run write themselves."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def write(self, word: str) -> None:
        (self.path / word).touch()

    def pids(self, word: str = "*") -> set[int]:
        """The processes that have signed with `word`."""
        return {int(entry.suffix[1:]) for entry in self.path.glob(f"{word}.*")}

    def pid(self, word: str) -> int:
        """The one process that signs with `word`, once it has."""
        (pid,) = wait_for(lambda: self.pids(word), f"{word} in the book")
        return pid

    def is_closed(self) -> bool:
        """Whether every process that ever signed is gone."""
        return not any(map(is_alive, self.pids()))
