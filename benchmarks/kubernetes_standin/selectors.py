"""Label and field selectors, as functions that say whether an object is chosen."""

import re
from collections.abc import Callable

from benchmarks.kubernetes_standin.resources import Object, Resource
from benchmarks.kubernetes_standin.statuses import bad_request

Chosen = Callable[[Object], bool]

_SET = re.compile(r"(?P<key>\S+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUAL = re.compile(r"(?P<key>[^!=]+?)\s*(?P<how>!=|==|=)\s*(?P<value>.*)")
_BETWEEN = re.compile(r",(?![^(]*\))")


def selector(resource: Resource, labels: str, fields: str) -> Chosen:
    """Whether an object has the labels and the fields; empty selectors choose all."""
    terms = [
        *(_label_term(term.strip()) for term in _BETWEEN.split(labels) if term.strip()),
        *(_field_term(resource, term.strip()) for term in fields.split(",") if term.strip()),
    ]
    return lambda item: all(term(item) for term in terms)


def _label_term(term: str) -> Chosen:
    if found := _SET.fullmatch(term):
        values = {value.strip() for value in found["values"].split(",")}
        return _among(found["key"], values, found["how"] == "in")
    if found := _EQUAL.fullmatch(term):
        return _among(found["key"], {found["value"]}, found["how"] != "!=")
    key = term.removeprefix("!").strip()
    return lambda item: (key in _labels(item)) is not term.startswith("!")


def _among(key: str, values: set[str], wanted: bool) -> Chosen:
    """An object without the label is not among the values."""
    return lambda item: (_labels(item).get(key) in values) is wanted


def _field_term(resource: Resource, term: str) -> Chosen:
    found = _EQUAL.fullmatch(term)
    if not found:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    known = {"metadata.name", "metadata.namespace"} if resource.namespaced else {"metadata.name"}
    if found["key"] not in known | resource.fields:
        where = f"/{resource.version}, Resource={resource.plural}"
        raise bad_request(
            f'Unable to find "{where}" that match label selector "", field selector "{term}": '
            f"field label not supported: {found['key']}"
        )
    return lambda item: (_field(item, found["key"]) == found["value"]) is (found["how"] != "!=")


def _field(item: Object, path: str) -> str:
    """The field as selectors compare it: what is not there is empty, or false where it is a truth value."""
    section, _, name = path.rpartition(".")
    value = (item.get(section, {}) if section else item).get(name, False if name == "unschedulable" else "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _labels(item: Object) -> dict[str, str]:
    labels: dict[str, str] = item["metadata"].get("labels", {})
    return labels
