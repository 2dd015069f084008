"""The house: what files and classes are called, and how long a function may be."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "agent", "coordinator", "plugins")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
FORBIDDEN = ("utils", "util", "helper", "helpers", "manager", "handler", "misc", "common")
LONGEST_FUNCTION = 45
LONGEST_FILE = 350

TYPE_NAME = re.compile(r"[A-Z]\w*[a-z]\w*")
BARE_GERUND = re.compile(r"[A-Z][a-z]+ing")
NOUNS = {
    "Ending": "how a group ended; the name of a published schema",
    "Finding": "the noun of the whole project",
    "Pairing": "the noun for who meets whom; the strategies take it as a setting",
    "Working": "the name of a published schema",
}
"""Class names that look like a bare gerund, each with the reason why it is right."""


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


def test_a_type_name_means_one_thing():
    """No class, type alias or type variable has the name of another. Private names and single letters are free."""
    places = defaultdict(list)
    for path in SOURCES:
        for name in type_names(ast.parse(path.read_text(encoding="utf-8"))):
            places[name].append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_class_is_called_by_what_it_does():
    """A class says what an object is: TrainingLoop, not Training."""
    names = {name for path in SOURCES for name in type_names(ast.parse(path.read_text(encoding="utf-8")))}
    assert {name for name in names if BARE_GERUND.fullmatch(name)} == set(NOUNS)


def type_names(tree: ast.Module) -> Iterator[str]:
    """The names of the classes, type aliases and type variables of a module that are not private."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if TYPE_NAME.fullmatch(name):
                    yield name
