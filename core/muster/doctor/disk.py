"""Whether a directory can be written, and has room."""

import os
import tempfile
from pathlib import Path

from muster.doctor.setup_finding import SetupFinding
from muster.model import Verdict


def disk(directory: Path, wanted_bytes: float, what: str) -> SetupFinding:
    """Writes a file and removes it again. `wanted_bytes` is how much may still come, `what` of.

    A directory that does not exist yet is looked at where it would be created.
    """
    place = next((each for each in (directory, *directory.parents) if each.exists()), directory)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".muster-doctor-") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        space = os.statvfs(place)
    except OSError as error:
        text = f"{place} cannot be written by user {os.geteuid()}: {error.strerror}; set data_dir, or change its owner"
        return SetupFinding("disk", Verdict.FAIL, text)
    free = space.f_bavail * space.f_frsize
    text = f"{place} has {free / 1e9:.1f} GB free"
    if free < wanted_bytes:
        return SetupFinding("disk", Verdict.WARN, f"{text}, and {what} may take {wanted_bytes / 1e9:.1f} GB more")
    if space.f_files and not space.f_favail:
        return SetupFinding("disk", Verdict.FAIL, f"{place} has no inodes left; remove files there")
    return SetupFinding("disk", Verdict.PASS, text)
