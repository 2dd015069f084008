"""The rooms of each package, drawn from the import contract in pyproject.toml and the docstrings of the rooms."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from generator.markdown import table

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "muster_coordinator": "coordinator",
    "muster_agent": "agent",
    "muster_plugins": "plugins",
}
"""The folder of each package that has rooms."""


def house() -> str:
    """A table for each package: its rooms from top to bottom, and what each room knows."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layered = {contract["containers"][0]: contract["layers"] for contract in contracts if contract["type"] == "layers"}
    blocks = [
        f"`{folder}/{package}/`\n\n" + table(_rows(package, layered[package]), ("level", "room", "what it knows"))
        for package, folder in PACKAGES.items()
    ]
    return "\n\n".join(blocks)


def _rows(package: str, layers: list[str]) -> Iterator[tuple[str, ...]]:
    for level, layer in zip(range(len(layers), 0, -1), layers, strict=True):
        for room in layer.split(" | "):
            yield str(level), _link(package, room), _first_sentence(_source(package, room))


def _source(package: str, room: str) -> Path:
    folder = ROOT / PACKAGES[package] / package
    module = folder / f"{room}.py"
    return module if module.exists() else folder / room / "__init__.py"


def _link(package: str, room: str) -> str:
    source = _source(package, room)
    place = source if source.name != "__init__.py" else source.parent
    return f"[`{place.relative_to(ROOT / PACKAGES[package] / package)}`](../../{place.relative_to(ROOT)})"


def _first_sentence(source: Path) -> str:
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
