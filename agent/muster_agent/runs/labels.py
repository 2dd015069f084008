"""Reads this node's labels from a file.

The file has lines `key="value"`, as Kubernetes' downward API writes them, or a JSON object: the labels by key, or a
node as `kubectl get node NODE -o json` prints it.
"""

import re
from pathlib import Path

from pydantic_core import from_json

from muster.errors import SettingsError
from muster.labels import valid_labels

MOST_BYTES = 1 << 20
"""The description of a Kubernetes node has about ten thousand bytes."""

_LINE = re.compile(r'(?P<key>[^\s="]+)=(?P<value>"(?:[^"\\]|\\.)*")')


def read_labels(path: Path | None) -> dict[str, str]:
    """The labels in the file at `path`, or none if that is None. SettingsError says which line is wrong and why."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"has more than {MOST_BYTES} bytes: it must hold the labels of one node")
        return parse_labels(content.decode())
    except OSError as error:
        raise SettingsError(f"agent.labels_file: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"agent.labels_file: {path}: {error}") from None


def parse_labels(text: str) -> dict[str, str]:
    """The labels by key. ValueError says which line is wrong and why."""
    return valid_labels(_of_object(text) if text.lstrip().startswith("{") else _of_lines(text))


def _of_lines(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise ValueError(f'line {number}: {line.strip()[:80]!r} is not key="value"')
        try:
            labels[found["key"]] = from_json(found["value"])
        except ValueError as error:
            raise ValueError(f"line {number}: the value of {found['key']!r}: {error}") from None
    return labels


def _of_object(text: str) -> dict[str, str]:
    try:
        content = from_json(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    metadata = content.get("metadata", {"labels": content})
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict):
        raise ValueError("has no metadata.labels: print one node with `kubectl get node NODE -o json`")
    for key, value in labels.items():
        if not isinstance(value, str):
            raise ValueError(f'the value of {key[:80]!r} is not a string, for example "r1"')
    return labels
