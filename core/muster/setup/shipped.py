"""Files for operators that come with muster: units, manifests, scripts. A guide shows each at its place in a clone."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

_IN_A_WHEEL = resources.files("muster") / "shipped"
_IN_A_CLONE = Path(__file__).parents[3]


def shipped(path: str) -> Traversable:
    """The file or folder at that place of a clone, such as `systemd`."""
    root = _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else _IN_A_CLONE
    return root.joinpath(*path.split("/"))


def shipped_texts(folder: str) -> Iterator[tuple[str, str]]:
    """The path below `folder` and the content of every file in it."""
    yield from _texts(shipped(folder), "")


def _texts(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _texts(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")
