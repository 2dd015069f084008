"""The wall clock of a program, as a test sets it: a library that the program loads shifts it; see clock.c."""

import struct
from pathlib import Path


class HostClock:
    """A clock that a test sets while programs run with it."""

    def __init__(self, library: Path, directory: Path) -> None:
        self._file = directory / "clock"
        self._library = library
        self._file.write_bytes(struct.pack("q", 0))

    @property
    def env(self) -> dict[str, str]:
        """What a program needs in its environment."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_FILE": str(self._file)}

    def set_to(self, off_by_s: int) -> None:
        """Sets the clock of all programs with it so far ahead of the true time, or behind if negative."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", off_by_s))
