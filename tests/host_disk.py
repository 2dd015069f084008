"""Lets the disk of a program fail in a test: a library that the program loads refuses its writes; see disk.c."""

import struct
from pathlib import Path

from tests.preloaded import built


class HostDisk:
    """The files of a program below `files`. They can always be read."""

    def __init__(self, directory: Path, files: Path) -> None:
        self._error = directory / "error"
        self._library = built("disk", directory)
        self._files = files
        self._error.write_bytes(struct.pack("i", 0))

    @property
    def env(self) -> dict[str, str]:
        """What the program needs in its environment."""
        return {"LD_PRELOAD": str(self._library), "DISK_FILE": str(self._error), "DISK_DIR": f"{self._files}/"}

    def fails_with(self, error: int) -> None:
        """Refuses writes with this error number from now on, such as `errno.ENOSPC`; 0 lets them succeed again."""
        with self._error.open("r+b") as file:
            file.write(struct.pack("i", error))
