"""Keeps what stands in a file, so that neither a restart of the agent nor a look by hand loses or doubles anything."""

import os
import tempfile
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from muster_plugins.checks.kernel_log.standing import Standing

_FORMAT = TypeAdapter(Standing)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Memory:
    """What stood after the last look. `trouble` says why it will not outlast this process, None when it will."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._standing: Standing | None = None
        self.trouble: str | None = None

    def recall(self) -> Standing:
        """What stands from this boot, from the file if nothing has been kept since this process began."""
        if self._standing is None:
            self._standing = self._read()
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        return self._standing if self._standing.boot_id == boot_id else Standing(boot_id=boot_id)

    def keep(self, standing: Standing) -> None:
        """Writes the file, unless nothing has changed; it is replaced as a whole."""
        if standing == self._standing and self.trouble is None:
            return
        self._standing = standing
        try:
            _replace(self._path, _FORMAT.dump_json(standing))
        except OSError as error:
            self.trouble = f"{self._path}: {error.strerror}"
        else:
            self.trouble = None

    def _read(self) -> Standing:
        """Nothing where the file is missing or cannot be used; the log is then read from its beginning."""
        try:
            return _FORMAT.validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return Standing(boot_id="")


def _replace(path: Path, content: bytes) -> None:
    """By way of a new file that is nobody else's: root may look here too, and the directory may not be root's."""
    descriptor, half = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(half).replace(path)
    except OSError:
        Path(half).unlink(missing_ok=True)
        raise
