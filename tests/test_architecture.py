"""The house: what files are called, and how long a function may be."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "agent", "coordinator", "plugins")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
FORBIDDEN = ("utils", "util", "helper", "helpers", "manager", "handler", "misc", "common")
LONGEST_FUNCTION = 45
LONGEST_FILE = 350


def test_every_module():
    """It says what it is for, has a name that means something, and is read in one sitting."""
    wrong = {str(path.relative_to(ROOT)): faults for path in SOURCES if (faults := list(faults_of(path)))}
    assert wrong == {}


def faults_of(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    if not ast.get_docstring(tree):
        yield "needs a docstring"
    if {*path.stem.split("_"), path.parent.name} & set(FORBIDDEN):
        yield "has a name that says nothing"
    if text.count("\n") > LONGEST_FILE:
        yield f"has more than {LONGEST_FILE} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{node.name} has {lines} lines, more than {LONGEST_FUNCTION}"


def test_packages_are_typed():
    """Type checkers take the annotations of every package into account."""
    packages = {path.parent for path in SOURCES if path.name == "__init__.py" and path.parent.parent.parent == ROOT}
    assert len(packages) == len(PACKAGES)
    assert [package for package in packages if not (package / "py.typed").is_file()] == []
