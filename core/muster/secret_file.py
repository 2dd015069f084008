"""Secrets that settings name by their file."""

from pathlib import Path

from muster.errors import SettingsError


def read_secret(path: Path, key: str) -> str:
    """The secret in a file that the setting `key` names, without the final newline."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{key}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{key}: cannot read {path}: {error}") from None
