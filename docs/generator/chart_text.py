"""Templates for Helm from several versions of one manifest: what it is without any feature, and what it is with each.

A *feature* is a component or a mode. Where all versions agree, the template has their text. Where they differ, it asks
which features are on. Example: the base has no key `env`, and only `rdma` and `gke` bring one:

    {{- if or (include "muster.rdma" .) (include "muster.gke" .) }}
    env:
    {{- if include "muster.rdma" . }}
      - name: NVIDIA_MOFED
    …

If several features replace the same value, the last one wins, as kustomize applies components in their order. The cost
is linear in the size of all versions.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

import yaml
from generator.kustomize import MERGED_BY

BASE = ""
"""The version without any feature."""

Versions = Mapping[str, Any]
"""By feature, in the order in which kustomize applies them, what a part of the manifest is.

A part that is not there with a feature is missing. Without BASE, the part exists with these features only."""

_Body = Callable[[Versions], Iterator[str]]
"""Gives the lines of a part of the manifest."""

_BRACES = re.compile(r"\{\{")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def condition(features: list[str]) -> str:
    """The expression that is true if one of the features is on."""
    asked = [f'(include "muster.{feature}" .)' for feature in features]
    return asked[0][1:-1] if len(asked) == 1 else f"or {' '.join(asked)}"


def template(versions: Versions) -> str:
    """The template of a table, such as a document, that exists in all these versions; empty for an empty one."""
    return "".join(f"{line}\n" for line in _entries(versions, ""))


def _guarded(entries: Iterable[tuple[Versions, _Body]], everywhere: list[str]) -> Iterator[str]:
    """The lines of entries, under a condition where they exist in some of the versions `everywhere` only."""
    for present, neighbours in groupby(entries, key=lambda entry: [*entry[0]]):
        lines = (line for part, body in neighbours for line in body(part))
        without = [name for name in everywhere if name not in present]
        if not without:
            yield from lines
            continue
        asked = f"not ({condition(without)})" if BASE in present else condition(present)
        yield f"{{{{- if {asked} }}}}"
        yield from lines
        yield "{{- end }}"


def _entries(part: Versions, indent: str) -> Iterator[str]:
    """The lines of a table, key by key."""
    keys = dict.fromkeys(key for value in part.values() for key in value)
    entries = (
        (
            {name: value[key] for name, value in part.items() if key in value},
            partial(_value, head=f"{indent}{key}:", indent=indent),
        )
        for key in keys
    )
    yield from _guarded(entries, [*part])


def _value(part: Versions, head: str, indent: str) -> Iterator[str]:
    """The lines of one value after `head`, its key."""
    values = [*part.values()]
    if all(value == values[0] for value in values):
        yield from _plain(values[0], head, indent)
    elif all(isinstance(value, dict) for value in values):
        yield head
        yield from _entries(part, f"{indent}  ")
    elif all(isinstance(value, list) for value in values):
        yield from _list(part, head, indent)
    else:
        yield from _alternatives(part, head, indent)


def _plain(value: object, head: str, indent: str) -> Iterator[str]:
    """A value that is the same in all versions. What looks like a template to Helm is escaped."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)
    lines = _BRACES.sub('{{ "{{" }}', text.removesuffix("...\n")).splitlines()
    if isinstance(value, dict | list) and value:
        yield head
        yield from (f"{indent}  {line}" for line in lines)
    else:
        yield f"{head} {lines[0]}"
        yield from (f"{indent}{line}" if line else "" for line in lines[1:])


def _list(part: Versions, head: str, indent: str) -> Iterator[str]:
    """A list whose items are told apart by a key, or a short list of texts."""
    key = MERGED_BY.get(head.strip().removesuffix(":"))
    if key is None:
        yield f"{head} [{''.join(_words(part))}]"
        return
    yield head
    names = dict.fromkeys(item[key] for items in part.values() for item in items)
    entries = (
        (
            {version: one for version, items in part.items() for one in items if one[key] == name},
            partial(_item, key=key, indent=f"{indent}  "),
        )
        for name in names
    )
    yield from _guarded(entries, [*part])


def _item(part: Versions, key: str, indent: str) -> Iterator[str]:
    """An item of a list; its key comes first."""
    name = next(iter(part.values()))[key]
    rest = {version: {each: item[each] for each in item if each != key} for version, item in part.items()}
    yield f"{indent}- {key}: {name}"
    yield from _entries(rest, f"{indent}  ")


def _words(part: Versions) -> Iterator[str]:
    """The texts of a list in brackets, each under its condition. YAML allows the comma after the last one."""
    for word in dict.fromkeys(word for words in part.values() for word in words):
        found = [version for version, words in part.items() if word in words]
        is_always = len(found) == len(part)
        yield f"{word}, " if is_always else f"{{{{ if {condition(found)} }}}}{word}, {{{{ end }}}}"


def _alternatives(part: Versions, head: str, indent: str) -> Iterator[str]:
    """The value of the last feature that changes it, or else that of the base."""
    changing = [name for name in reversed([*part]) if name != BASE and (BASE not in part or part[name] != part[BASE])]
    order = [*changing, BASE] if BASE in part else changing
    *asked, last = [[*names] for _, names in groupby(order, key=part.__getitem__)]
    for position, names in enumerate(asked):
        yield f"{{{{- {'else if' if position else 'if'} {condition(names)} }}}}"
        yield from _plain(part[names[0]], head, indent)
    yield "{{- else }}"
    yield from _plain(part[last[0]], head, indent)
    yield "{{- end }}"
