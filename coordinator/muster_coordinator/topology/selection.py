"""Selections of nodes, such as `rack=r1,r2 health!=FAILED`, and the nodes that they choose.

A selection has terms, separated by spaces or `;`. A node must fit all of them. A term is `key=value,value`, or
`key!=value,value` to leave nodes out. A list of names alone means `name=…`. A value is a name, names with ranges as in
Slurm (`node-[01-16]`), or a pattern with `*` and `?`.
"""

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.errors import Refused, unknown
from muster.hostlist import expand
from muster.model import Topology
from muster.nouns import count
from muster_coordinator.topology.selection_term import KEYS, LABEL, STATES, Candidate, Term, is_pattern

EXAMPLE = "for example rack=r1,r2 or node-[1-16] or label:pool=a3"

MOST_TERMS, MOST_PATTERNS = 32, 100
"""Maximum number of patterns. More are a typing error such as `node-[1-5000]*`. The fleet waits while every pattern is
tried on every node.
"""

_SHOWN = 10
_SPACE_AT_COMMA = re.compile(r"\s*,\s*")
_CONDITION = re.compile(r"(?P<key>[^=!]*)(?P<excludes>!?)=(?P<values>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen nodes, in the given order, and the nodes that only the topology file has."""

    nodes: tuple[str, ...]
    never_heard_of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """A node is chosen if all `terms` fit. Without terms, every node is chosen."""

    terms: tuple[Term, ...] = ()

    def choose(self, nodes: Sequence[Candidate], declared: Mapping[str, Topology]) -> Chosen:
        """Like `fitting`, but raises Refused if no node fits, for callers that need some."""
        if not nodes:
            raise Refused("there are no nodes yet: start `muster agent` on each")
        chosen = self.fitting(nodes, declared)
        if not chosen.nodes:
            raise Refused(_why_nobody(self.terms, nodes))
        return chosen

    def fitting(self, nodes: Sequence[Candidate], declared: Mapping[str, Topology]) -> Chosen:
        """Those of `nodes` that fit, which may be none. Raises Refused if a term names something that does not exist.

        `declared` has the positions from the topology file, including nodes that were never heard.
        """
        known = {node.name for node in nodes}
        strangers = [Candidate(name, where) for name, where in declared.items() if name not in known]
        for term in self.terms:
            _require(term, nodes, strangers)
        chosen = tuple(node.name for node in nodes if self._fits(node))
        return Chosen(chosen, tuple(sorted(node.name for node in strangers if self._fits(node))))

    def _fits(self, node: Candidate) -> bool:
        return all(term.fits(node) for term in self.terms)


def parse_selection(text: str) -> Selection:
    """The selection in a text. Raises Refused with the wrong term and a valid form."""
    lexer = shlex.shlex(_SPACE_AT_COMMA.sub(",", text), posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r\n;", True, ""
    try:
        terms = tuple(map(_term, itertools.islice(lexer, MOST_TERMS + 1)))
    except ValueError as error:  # ValueError of the lexer: an unclosed quote
        raise Refused(f"selection {text[:80]!r}: {str(error).lower()}") from None
    if not terms:
        raise Refused(f"the selection is empty: leave it out to mean all nodes, or write one, {EXAMPLE}")
    if len(terms) > MOST_TERMS:
        raise Refused(f"the selection has more than {MOST_TERMS} terms: give names between commas, without spaces")
    if (patterns := sum(map(is_pattern, (value for term in terms for value in term.values)))) > MOST_PATTERNS:
        raise Refused(
            f"the selection makes {patterns} patterns, at most {MOST_PATTERNS} are allowed: leave out * and ?"
        )
    return Selection(terms)


def _term(word: str) -> Term:
    found = _CONDITION.fullmatch(word)
    if found is None:
        return Term("name", _values(word, word))
    key, excludes = found["key"], bool(found["excludes"])
    if key not in KEYS and not (key.startswith(LABEL) and key != LABEL):
        raise Refused(f"{word!r}: {unknown('key', key, [*KEYS, f'{LABEL}KEY'])}")
    values = _values(word, found["values"])
    return Term(key, _states(word, key, values) if key in STATES else values, excludes)


def _values(word: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(expand(text)))
    except ValueError as error:
        raise Refused(f"{word!r}: {error}") from None


def _states(word: str, key: str, values: Iterable[str]) -> tuple[str, ...]:
    """The values as states, which may be written in small letters."""
    states = tuple(value.upper() for value in values)
    for state in states:
        if state not in STATES[key]:
            raise Refused(f"{word!r}: {unknown(key, state, STATES[key])}")
    return states


def _require(term: Term, nodes: Iterable[Candidate], strangers: Iterable[Candidate]) -> None:
    """Raises Refused for a term with a value that no node has, unless a node may have it later."""
    existing = term.existing(nodes)
    missing = term.unmet(existing) if term.is_lasting else ()
    if not missing:
        return
    what, first = "node" if term.key == "name" else term.key, missing[0]
    if expected := [node.name for node in strangers if Term(term.key, (first,)).fits(node)]:
        where = f"{what} {first!r} is in the topology file"
        raise Refused(f"{where}, but no agent has reported from there yet: it names {_some(expected)}")
    more = f"; and {len(missing) - 1} more of {term}" if len(missing) > 1 else ""
    raise Refused(unknown(what, first, existing) + more)


def _why_nobody(terms: Iterable[Term], nodes: Sequence[Candidate]) -> str:
    """The number of nodes that each term fits by itself, and the existing values if it fits none."""
    parts = []
    for term in terms:
        if fitting := sum(map(term.fits, nodes)):
            parts.append(f"{term} fits {fitting} of {count(len(nodes), 'node')}")
        elif existing := term.existing(nodes):
            parts.append(f"{term} fits none (there is {_some(existing)})")
        else:
            parts.append(f"{term} fits none (no node has a {term.key} just now)")
    return f"no node fits every term: {'; '.join(parts)}"


def _some(names: Iterable[str]) -> str:
    """The first of the names in order, and the number of the others."""
    listed = sorted(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
