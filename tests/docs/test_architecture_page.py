"""The pages about the code name files that exist, and every room says what it is for."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXPLANATION = ROOT / "docs" / "explanation"
PAGES = {name: (EXPLANATION / name).read_text(encoding="utf-8") for name in ("architecture.md", "localisation.md")}
FOLDERS = (
    ROOT / "core/muster",
    ROOT / "agent/muster_agent",
    ROOT / "coordinator/muster_coordinator",
    ROOT / "plugins/muster_plugins",
)
MENTIONED = sorted({name for text in PAGES.values() for name in re.findall(r"`([a-z_/]+\.(?:py|toml))`", text)})
ROOMS = sorted(path.parent for folder in FOLDERS[1:] for path in folder.glob("*/__init__.py"))


def test_there_are_files_to_look_for():
    """Or else the next test would find nothing."""
    assert len(MENTIONED) > 40
    assert "localize/rules/evidence_against.py" in MENTIONED


def test_a_module_is_named_with_its_file_extension():
    """Without `.py`, nothing checks that it exists."""
    modules = {path.relative_to(folder).with_suffix("") for folder in FOLDERS for path in folder.rglob("*.py")}
    named = {Path(name) for text in PAGES.values() for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+)`", text)}
    assert named & modules == set()


@pytest.mark.parametrize("name", [name for name in MENTIONED if name not in ("pyproject.toml", "__init__.py")])
def test_a_file_that_a_page_names_exists(name):
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
