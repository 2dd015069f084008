"""What Kubernetes refuses to store, of the fields that muster writes.

After ValidateObjectMeta, ValidateNode and legacyValidateEvent of Kubernetes, in shorter words.
"""

import re
from collections.abc import Iterator, Mapping

from benchmarks.kubernetes_standin.resources import EVENTS, LEASES, NEW_EVENTS, NODES, Object, Resource
from benchmarks.kubernetes_standin.statuses import Problem, bad_request, invalid

MOST_ANNOTATIONS_BYTES = 256 << 10
MOST_VALUE_CHARACTERS = 63
"""Of a label's or a taint's value."""

MOST_NOTE_CHARACTERS = 1024

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = re.compile(rf"({_NAME})?")
_KEY = re.compile(rf"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_NAME}")
_MOST_CHARACTERS = {"reportingInstance": 128, "action": 128, "reason": 128}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check(resource: Resource, item: Object) -> None:
    """Refused when an object is not to be stored so."""
    metadata = item["metadata"]
    for section in ("labels", "annotations"):
        for value in metadata.get(section, {}).values():
            if not isinstance(value, str):
                raise bad_request(f"cannot unmarshal {value!r} into field ObjectMeta.{section} of type string")
    problems = [*_label_problems(metadata.get("labels", {})), *_annotation_problems(metadata.get("annotations", {}))]
    if resource is NODES:
        problems += _taint_problems(item.get("spec", {}).get("taints", []))
    if resource in {EVENTS, NEW_EVENTS}:
        problems += _event_problems(resource, item)
    if resource is LEASES and item["spec"].get("leaseDurationSeconds", 1) <= 0:
        problems.append(("spec.leaseDurationSeconds", "Invalid value: must be greater than 0"))
    if problems:
        raise invalid(resource, metadata["name"], problems)


def _label_problems(labels: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in labels.items():
        yield from _key_problems("metadata.labels", key)
        yield from _value_problems("metadata.labels", value)


def _annotation_problems(annotations: Mapping[str, str]) -> Iterator[Problem]:
    for key in annotations:
        yield from _key_problems("metadata.annotations", key)
    if sum(len(key) + len(value.encode()) for key, value in annotations.items()) > MOST_ANNOTATIONS_BYTES:
        yield "metadata.annotations", f"Too long: may not be more than {MOST_ANNOTATIONS_BYTES} bytes"


def _taint_problems(taints: list[Object]) -> Iterator[Problem]:
    seen = set()
    for index, taint in enumerate(taints):
        path, key, effect = f"spec.taints[{index}]", taint.get("key", ""), taint.get("effect", "")
        yield from _key_problems(f"{path}.key", key)
        yield from _value_problems(f"{path}.value", taint.get("value", ""))
        if effect not in _EFFECTS:
            yield f"{path}.effect", f'Unsupported value: "{effect}": supported values: {", ".join(_EFFECTS)}'
        if (key, effect) in seen:
            yield path, "Duplicate value: taints must be unique by key and effect pair"
        seen.add((key, effect))


def _key_problems(field: str, key: str) -> Iterator[Problem]:
    if not _KEY.fullmatch(key):
        yield field, f'Invalid value: "{key}": must consist of a name and, before a slash, a DNS subdomain'


def _value_problems(field: str, value: str) -> Iterator[Problem]:
    if len(value) > MOST_VALUE_CHARACTERS or not _VALUE.fullmatch(value):
        yield field, f'Invalid value: "{value}": must be at most {MOST_VALUE_CHARACTERS} of A-Z a-z 0-9 - _ .'


def _event_problems(resource: Resource, event: Object) -> Iterator[Problem]:
    """An event is in its object's namespace, or in `default` if that has none; one with a time says who reports."""
    subject, note, controller = (
        ("involvedObject", "message", "reportingComponent")
        if resource is EVENTS
        else ("regarding", "note", "reportingController")
    )
    if (event.get(subject, {}).get("namespace") or "default") != event["metadata"]["namespace"]:
        yield f"{subject}.namespace", 'Invalid value: "": does not match event.namespace'
    if resource is EVENTS and not event.get("eventTime"):
        return
    for name in ("eventTime", controller, *_MOST_CHARACTERS):
        if not event.get(name):
            yield name, "Required value"
    for name, most in (_MOST_CHARACTERS | {note: MOST_NOTE_CHARACTERS}).items():
        if len(event.get(name, "")) > most:
            yield name, f"Invalid value: can have at most {most} characters"
    if event.get("type") not in {"Normal", "Warning"}:
        yield "type", f'Invalid value: "{event.get("type")}": has invalid value'
