"""Text files that settings or options name."""

from pathlib import Path

from muster.errors import SettingsError


def read_text(path: Path, named_by: str) -> str:
    """The text of a file, without a byte order mark, which some editors write at the beginning.

    Raises SettingsError, which begins with what names the file, if it cannot be read or is not text in UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{named_by}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{named_by}: {path}: line {line} is not text in UTF-8; save the file as UTF-8") from None
