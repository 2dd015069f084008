"""Keeps standing events in a file, so that a restart or a run by hand neither loses nor doubles one."""

import os
import tempfile
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from muster_plugins.checks.kernel_log.standing import StandingEvents

_FORMAT = TypeAdapter(StandingEvents)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class StandingEventsFile:
    """The events that stood after the last look. `trouble` says why they cannot be kept, if so."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._standing: StandingEvents | None = None
        self.trouble: str | None = None

    def require_kept(self) -> None:
        """Raises OSError if no process has stored events here; then this is not the directory that the agent uses."""
        self._path.stat()

    def recall(self) -> StandingEvents:
        """The standing events of this boot; from the file if this process has not kept any yet."""
        if self._standing is None:
            self._standing = self._read()
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        return self._standing if self._standing.boot_id == boot_id else StandingEvents(boot_id=boot_id)

    def keep(self, standing: StandingEvents) -> None:
        """Replaces the whole file, unless nothing has changed."""
        if standing == self._standing and self.trouble is None:
            return
        self._standing = standing
        try:
            _replace(self._path, _FORMAT.dump_json(standing))
        except OSError as error:
            self.trouble = f"{self._path}: {error.strerror}"
        else:
            self.trouble = None

    def _read(self) -> StandingEvents:
        """The file's content; nothing if it is missing or unusable, and then the log is read from its beginning."""
        try:
            return _FORMAT.validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return StandingEvents(boot_id="")


def _replace(path: Path, content: bytes) -> None:
    """Replaces a file through a new file that this process owns: root may run here in another user's directory."""
    descriptor, half = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(half).replace(path)
    except OSError:
        Path(half).unlink(missing_ok=True)
        raise
