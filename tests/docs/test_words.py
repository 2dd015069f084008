"""Documents, help texts and product code do not use phrases that readers stumbled over.

A pattern is here because a reader had to read a sentence with it twice, or because the phrase is another name for
something that has one already. Take a pattern out when it stops a good sentence: people must understand the text.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typer
from tests.cases import cases
from typer.main import get_command

from muster import cli

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PRODUCT = ("agent", "coordinator", "core", "plugins", "systemd", "daemonset", "docker", "docs/examples")
CODE = re.compile(r"^( *)```.*?^\1```|`[^`\n]+`", re.MULTILINE | re.DOTALL)

INSTEAD = {
    # Inversions and riddles.
    r"who only observes": "In observe mode, muster …",
    r"\b(do|does|did|go|goes on) without (?!it\b)": "does not need …; leaves out …",
    r"\bas far as\b": "if …; the known …",
    r"\bof (an earlier|these nothing|those nothing|what is left)\b": "start with the subject",
    r"(?:^|[.;:] )(?-i:Of) (a|an|one|those|these|what|several|equals)\b": "start with the subject: 'If several, …'",
    r"\bso many\b": "a number of …, at least … ; a percentage of …",
    r"\bwhoever\b": "the user that …; everybody that …",
    r"\bgo(es)? (before|at once)\b": "overrides; is drained at once",
    r"\bcomes? to nothing\b": "fails",
    r"\b(it is let|let (it )?be|let back|lets? it back)\b": "returns to service; waits",
    r"\bby lot\b": "at random",
    r"\bof more,": "above that number, …",
    r"\bat (the )?least so\b|\bso long it\b": "minimum …",
    r"\bthat it becomes\b": "maximum of …",
    r"\bget(s|ting)? its say\b|\bhas had its say\b": "has reported",
    r"\bneed be\b|\bnobody need\b|\bno one need\b": "you need not …",
    r"\b(shall|anew|thereby|whereupon|heeds?|heeded)\b": "must, again, so, then, respects",
    r"\bin vain\b": "wrongly; without success",
    r"\bgets? its way\b": "fails",
    r"\bsuffices\b|\bwill do\b": "is enough",
    # One thing, one name.
    r"\basks? for it to go\b|\bask that it go": "requires draining",
    r"\bstands? against (it|them) any ?more\b": "once all faults have cleared",
    r"\b(its|their) own fault\b": "the node itself is faulty",
    r"\btakes? no nodes? out\b|\bnodes? is taken out\b|\btakes? a node out(?! of)": "drains; does not drain",
    r"\bkeeps? no work off\b": "cannot drain",
    r"\bhas it otherwise\b": "differs from the decision; muster applies it again",
    r"\blets? (it|them|nodes?) (in|back) again\b|\blet it pass\b": "uncordons; returns to service",
    r"\b(absolved?|absolves|acquits?|acquitted)\b": "clears",
    r"\bindicts?\b": "convicts",
    r"\b(roster|inquiry|inquiries|pleas?)\b": "registry; check; request",
    r"\bthin(s|ned|ning)\b": "retention; downsampling",
    r"\bbeyond chance\b|\bchance may bring about\b": "significance; false-accusation rate",
    r"\b(shunned|standing trouble|repeaters)\b": "suspect; flapping",
}
"""What to write instead of a pattern."""

PLAIN_IN_CODE = {r"\bof (an earlier|these nothing|those nothing|what is left)\b", r"\bso many\b"}
"""Patterns that also match plain sentences about code: 'a sweep of an earlier release', 'so many that …'."""

PUBLISHED = '"thinned"'
"""The name of a log line, which stays."""

FLAGS = re.IGNORECASE | re.MULTILINE


def running_text(path: Path) -> str:
    """A document without its code, where every line keeps its number."""
    return CODE.sub(lambda code: "\n" * code[0].count("\n"), path.read_text(encoding="utf-8"))


@cache
def product_texts() -> dict[Path, str]:
    """Every file of the product: code with its docstrings, comments and messages, settings, manifests, examples.

    Files in `vendor/` were written by others.
    """
    files = (path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*")) if path.is_file())
    written = (path for path in files if not {"__pycache__", "vendor"} & {*path.parts})
    return {path: path.read_text(encoding="utf-8").replace(PUBLISHED, "") for path in written}


def uses(pattern: str, texts: Mapping[Path, str]) -> list[str]:
    """The places of the phrase with what is written there."""
    return [
        f"{path.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}: {match[0].strip()}"
        for path, text in texts.items()
        for match in re.finditer(pattern, text, FLAGS)
    ]


@cache
def help_texts() -> dict[str, str]:
    """Every help text of the command line by its command or option."""
    root = get_command(cli.app)
    return dict(_texts(root, typer.Context(root, info_name="muster")))


def _texts(command: Any, context: typer.Context) -> Iterator[tuple[str, str]]:
    yield context.command_path, command.help or ""
    for option in command.params:
        yield f"{context.command_path} {option.opts[0]}", getattr(option, "help", None) or ""
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        member = command.get_command(context, name)
        yield from _texts(member, typer.Context(member, info_name=name, parent=context))


@cases("pattern", INSTEAD)
def test_no_document_uses_the_phrase(pattern):
    """In its running text; what programs print is not a matter of documents."""
    found = uses(pattern, {path: running_text(path) for path in DOCUMENTS})
    assert not found, f"write instead: {INSTEAD[pattern]}"


@cases("pattern", [pattern for pattern in INSTEAD if pattern not in PLAIN_IN_CODE])
def test_no_file_of_the_product_uses_the_phrase(pattern):
    """In docstrings, comments, messages, settings, manifests and examples."""
    found = uses(pattern, product_texts())
    assert not found, f"write instead: {INSTEAD[pattern]}"


@cases("pattern", INSTEAD)
def test_no_help_text_uses_the_phrase(pattern):
    """Of commands, arguments and options."""
    found = {place: text for place, text in help_texts().items() if re.search(pattern, text, FLAGS)}
    assert not found, f"write instead: {INSTEAD[pattern]}"


def test_no_document_has_marks_of_a_merge():
    """Both sides of a conflict would stand there, one of them out of date."""
    marks = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    assert [str(path) for path in DOCUMENTS if marks.search(path.read_text(encoding="utf-8"))] == []


def test_there_are_texts_to_look_at():
    """Or else the tests above would find nothing."""
    assert len(DOCUMENTS) > 25
    assert len(help_texts()) > 100
    assert len(product_texts()) > 500
    assert {".py", ".toml", ".yaml", ".service", ".sbatch"} <= {path.suffix for path in product_texts()}
    assert set(INSTEAD) > PLAIN_IN_CODE
    assert all(help_texts()[place] for place in ("muster sweep start --max-parallel", "muster quarantine"))
