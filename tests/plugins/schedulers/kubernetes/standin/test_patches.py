"""The patches of the stand-in for the Kubernetes API change what those of a real server change, and refuse the same."""

from typing import Any

import pytest
from benchmarks.kubernetes_standin.patches import json_patched, merge_patched, strategic_patched
from benchmarks.kubernetes_standin.statuses import Refused
from tests.cases import cases

NODE: dict[str, Any] = {
    "metadata": {"labels": {"pool": "a", "zone": "z"}},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r"}]},
}
HEALTHY = {"type": "MusterHealthy", "status": "True"}


def patched(section, value):
    return NODE | {section: value}


@cases("patch", [merge_patched, strategic_patched])
@cases(
    ("change", "expected"),
    [
        ({"metadata": {"labels": {"pool": "b"}}}, patched("metadata", {"labels": {"pool": "b", "zone": "z"}})),
        ({"metadata": {"labels": {"pool": None}}}, patched("metadata", {"labels": {"zone": "z"}})),
        ({"metadata": {"labels": None}}, patched("metadata", {})),
        ({"spec": {"taints": [{"key": "b"}]}}, patched("spec", {"taints": [{"key": "b"}]})),
        ({"spec": {"taints": None}}, patched("spec", {})),
    ],
)
def test_what_both_merges_do(patch, change, expected):
    """Objects are merged, null removes, and taints are one value."""
    assert patch(NODE, change) == expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([HEALTHY], [*NODE["status"]["conditions"], HEALTHY]),
        ([{"type": "Ready", "status": "False"}], [{"type": "Ready", "status": "False", "reason": "r"}]),
        ([{"type": "Ready", "$patch": "delete"}], []),
        ([{"$patch": "replace"}, HEALTHY], [HEALTHY]),
    ],
)
def test_a_strategic_merge_of_conditions(conditions, expected):
    """Conditions are merged by their type, and may be deleted or replaced."""
    assert strategic_patched(NODE, {"status": {"conditions": conditions}})["status"]["conditions"] == expected


def test_a_merge_of_conditions():
    """A merge patch knows no lists: it replaces them."""
    assert merge_patched(NODE, {"status": {"conditions": [HEALTHY]}})["status"]["conditions"] == [HEALTHY]


@cases(
    ("operation", "section", "expected"),
    [
        ({"op": "add", "path": "/metadata/labels/muster.dev~1x", "value": "y"}, "metadata",
         {"labels": {"pool": "a", "zone": "z", "muster.dev/x": "y"}}),
        ({"op": "add", "path": "/spec/taints/-", "value": {"key": "b"}}, "spec",
         {"taints": [*NODE["spec"]["taints"], {"key": "b"}]}),
        ({"op": "replace", "path": "/spec/taints/0", "value": {"key": "b"}}, "spec", {"taints": [{"key": "b"}]}),
        ({"op": "remove", "path": "/spec/taints/0"}, "spec", {"taints": []}),
        ({"op": "remove", "path": "/spec/taints"}, "spec", {}),
        ({"op": "test", "path": "/spec/taints/0/key", "value": "a"}, "spec", NODE["spec"]),
        ({"op": "test", "path": "/spec/unschedulable", "value": None}, "spec", NODE["spec"]),
    ],
)  # fmt: skip
def test_a_json_patch(operation, section, expected):
    """An operation changes what its path names."""
    assert json_patched(NODE, [operation]) == patched(section, expected)


@cases(
    "operation",
    [
        {"op": "test", "path": "/spec/taints/0/key", "value": "b"},
        {"op": "replace", "path": "/spec/unschedulable", "value": True},
        {"op": "remove", "path": "/spec/unschedulable"},
        {"op": "remove", "path": "/spec/taints/1"},
        {"op": "add", "path": "/metadata/annotations/x", "value": "y"},
        {"op": "add", "path": "/spec/taints/2", "value": {}},
        {"op": "add", "path": "/spec/taints/x", "value": {}},
        {"op": "invent", "path": "/spec"},
        {"path": "/spec"},
    ],
)
def test_a_json_patch_that_does_not_fit(operation):
    """A patch that does not fit in any of its operations is refused, and changes nothing."""
    before = {"op": "remove", "path": "/metadata"}
    with pytest.raises(Refused) as refused:
        json_patched(NODE, [before, operation])
    assert refused.value.code == 422
    assert "labels" in NODE["metadata"]
