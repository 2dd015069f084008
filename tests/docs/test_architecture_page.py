"""docs/explanation/architecture.md names files that exist, and every room says what it is for."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
FOLDERS = (
    ROOT / "core/muster",
    ROOT / "agent/muster_agent",
    ROOT / "coordinator/muster_coordinator",
    ROOT / "plugins/muster_plugins",
)
MENTIONED = sorted(set(re.findall(r"`([a-z_/]+\.(?:py|toml))`", PAGE.read_text(encoding="utf-8"))))
ROOMS = sorted(path.parent for folder in FOLDERS[1:] for path in folder.glob("*/__init__.py"))


def test_there_are_files_to_look_for():
    """Or else the next test would find nothing."""
    assert len(MENTIONED) > 40


@pytest.mark.parametrize("name", [name for name in MENTIONED if name not in ("pyproject.toml", "__init__.py")])
def test_a_file_that_the_page_names_exists(name):
    """A walk or a row of the table that names a moved file sends its reader nowhere."""
    assert any((folder / name).is_file() for folder in FOLDERS)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: f"{room.parent.name}/{room.name}")
def test_a_room_says_where_to_start(room):
    """Its docstring names at least one file, and every file that it names exists."""
    text = (room / "__init__.py").read_text(encoding="utf-8")
    files = re.findall(r"`([a-z_/]+\.py)`", text)
    missing = [name for name in files if not (room / name).is_file() and not list(room.glob(f"*/{name}"))]
    assert missing == []
    assert files, "name the file to read first"


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: f"{room.parent.name}/{room.name}")
def test_a_room_says_what_it_must_not_know(room):
    """Or somebody puts a decision, a socket or a query where nobody looks for it."""
    text = (room / "__init__.py").read_text(encoding="utf-8")
    assert "must not" in text.lower(), "say what the room must not know or do"
