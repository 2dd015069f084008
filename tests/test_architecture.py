"""The house: who may import whom, what files are called, and how long a function may be."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "agent", "coordinator", "plugins")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
FORBIDDEN = ("utils", "util", "helper", "helpers", "manager", "handler", "misc", "common")
LONGEST_FUNCTION = 45
LONGEST_FILE = 350


def test_import_contract():
    """Agent, coordinator and plugins import only core; core imports nobody; decisions import no I/O."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module(path):
    """Every module says what it is for, has a name that means something, and is read in one sitting."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "needs a docstring"
    assert not {*path.stem.split("_"), path.parent.name} & set(FORBIDDEN)
    assert text.count("\n") <= LONGEST_FILE
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    }
    assert long == {}


def test_packages_are_typed():
    """Type checkers take the annotations of every package into account."""
    packages = {path.parent for path in SOURCES if path.name == "__init__.py" and path.parent.parent.parent == ROOT}
    assert len(packages) == len(PACKAGES)
    assert [package for package in packages if not (package / "py.typed").is_file()] == []
