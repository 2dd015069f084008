"""Secrets that settings name by their file."""

from pathlib import Path

from muster.text_file import read_text


def read_secret(path: Path, key: str) -> str:
    """The secret in a file that the setting `key` names, without the final newline."""
    return read_text(path, key).strip()
