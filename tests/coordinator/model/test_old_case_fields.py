"""A case is served under its old field names too, until 0.3."""

import json

import pytest

from muster_coordinator.model.old_case_fields import OLD_NAMES
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.store.paging import Page
from muster_coordinator.web.route_table import openapi_text

CASE = CaseView(
    node="n1",
    since=1_000.0,
    domain="r1",
    left=True,
    cordoned_at=(1_000.0, 2_000.0),
    silent_after_s={"gemm": 60.0},
    retest_at=3_000.0,
    rounds=2,
    lifted="nvml.xid 79",
)
WRITTEN = [CASE.model_dump_json(), Page(items=(CASE,), next_cursor=None).model_dump_json()]


@pytest.mark.parametrize("written", WRITTEN, ids=["case", "page"])
def test_each_old_field_equals_the_new_one(written: str) -> None:
    """By itself and in a page, whatever the field holds."""
    answer = json.loads(written)
    case = answer.get("items", [answer])[0]
    assert case["domain"] == "r1"
    for old, new in OLD_NAMES.items():
        assert case[old] == case[new], old


def test_a_case_is_read_by_its_new_names() -> None:
    """What is written can be read, and the old names count for nothing."""
    assert CaseView.model_validate_json(WRITTEN[0]) == CASE
    assert CaseView.model_validate({"node": "n1", "since": 0, "rounds": 1, "place": "r1"}).domain is None


def test_openapi_marks_the_old_fields_as_deprecated() -> None:
    """Each has the type of the new field and names it; no other field is deprecated."""
    fields = json.loads(openapi_text())["components"]["schemas"]["CaseView"]["properties"]
    assert {name for name, field in fields.items() if field.get("deprecated")} == OLD_NAMES.keys()
    for old, new in OLD_NAMES.items():
        about = {"description": f"Use `{new}`. Removed in 0.3.", "deprecated": True}
        assert fields[old] == {**fields[new], **about}, old
