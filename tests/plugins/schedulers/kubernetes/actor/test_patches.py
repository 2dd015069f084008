"""What is changed on a node for a transition: a table of nodes, transitions, and the patches that are missing."""

import pytest

from muster_plugins.schedulers.kubernetes.marks import OurMark
from muster_plugins.schedulers.kubernetes.patches import Form, patches

OURS = {"key": "muster.dev/quarantine", "effect": "NoSchedule"}
OTHERS = {"key": "example.com/slow", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
STARTUP = {"key": "muster.dev/accepting", "effect": "NoExecute"}
LABEL = "muster.dev/service-state"


def marked(**more):
    """The metadata of a node that we keep out for `to-CORDONED`."""
    mark = OurMark.model_validate(
        {
            "transition": "to-CORDONED",
            "state": "CORDONED",
            "reason": "GPU 3 has fallen off the bus",
            "since": "2027-01-15T08:00:00Z",
            **more,
        }
    )
    annotations = {"muster.dev/quarantine": mark.model_dump_json(exclude_defaults=True)}
    return {"annotations": annotations, "labels": {LABEL: "cordoned"}}


OUT = {"unschedulable": True}
CORDON = "spec.unschedulable=true, label muster.dev/service-state=cordoned, annotation muster.dev/quarantine"
UNDO = "no spec.unschedulable, no annotation muster.dev/quarantine, label muster.dev/service-state=in-service"

TABLE = {
    "a node in service": (
        "CORDONED", {}, {},
        [CORDON, "taint muster.dev/quarantine:NoSchedule"],
    ),
    "a node that is out already": (
        "CORDONED", marked(taint=OURS), {**OUT, "taints": [OTHERS, OURS]},
        [],
    ),
    "a node that lacks the taint": (
        "CORDONED", marked(taint=OURS), {**OUT, "taints": [OTHERS]},
        ["taint muster.dev/quarantine:NoSchedule"],
    ),
    "a node with another taint of ours": (
        "CORDONED", marked(taint={"key": "old", "effect": "NoSchedule"}),
        {**OUT, "taints": [{"key": "old", "effect": "NoSchedule"}]},
        ["no taint old:NoSchedule", CORDON, "taint muster.dev/quarantine:NoSchedule"],
    ),
    "a node that goes into probation": (
        "PROBATION", marked(taint=OURS), {**OUT, "taints": [OURS]},
        [CORDON.replace("cordoned", "probation")],
    ),
    "a new node": (
        "ACCEPTING", {}, {"taints": [STARTUP]},
        [
            CORDON.replace("cordoned", "accepting"), "taint muster.dev/quarantine:NoSchedule",
        ],
    ),
    "a new node that is accepted": (
        "IN_SERVICE", marked(taint=OURS), {**OUT, "taints": [STARTUP, OTHERS, OURS]},
        ["no taint muster.dev/accepting:NoExecute, no taint muster.dev/quarantine:NoSchedule", UNDO],
    ),
    "a node with the same taint of somebody else": (
        "IN_SERVICE", marked(), {**OUT, "taints": [OURS]},
        [UNDO],
    ),
    "a node that somebody has uncordoned": (
        "IN_SERVICE", marked(taint=OURS), {"taints": [OURS]},
        ["no taint muster.dev/quarantine:NoSchedule", UNDO],
    ),
    "a node that was never out": (
        "IN_SERVICE", {}, {},
        ["label muster.dev/service-state=in-service"],
    ),
    "a node that is as it should be": (
        "IN_SERVICE", {"labels": {LABEL: "in-service"}}, {},
        [],
    ),
    "a node for which there is no room": (
        "HELD", {}, {"taints": [OTHERS]},
        ["label muster.dev/service-state=held"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE)
def test_what_is_missing_is_patched(as_node, transition, settings, case):
    """And nothing else. The mark goes first when a node is cordoned, and last when it is uncordoned."""
    after, metadata, spec, expected = case
    node = as_node(spec=spec, **metadata)
    assert [patch.says for patch in patches(node, transition(after), settings())] == expected


def test_the_mark_tells_all_that_is_needed_to_undo_it(as_node, transition, settings):
    """Cordon and mark are one request, in which nothing is that we do not want to own."""
    mark, taint = patches(as_node(spec={"taints": [OTHERS]}), transition(), settings())
    assert (mark.form, mark.guarded, mark.rest) == (Form.APPLY, True, {"spec": {"unschedulable": True}})
    assert mark.metadata["labels"] == {LABEL: "cordoned"}
    read = OurMark.model_validate_json(mark.metadata["annotations"]["muster.dev/quarantine"])
    assert read.model_dump(mode="json") == {
        "transition": "to-CORDONED",
        "state": "CORDONED",
        "reason": "GPU 3 has fallen off the bus",
        "since": "2027-01-15T08:00:00.000Z",
        "causes": [],
        "taint": {**OURS, "value": ""},
    }
    assert (taint.form, taint.guarded, taint.rest) == (Form.MERGE, True, {"spec": {"taints": [OTHERS, OURS]}})


def test_a_node_without_a_taint_of_ours_is_only_cordoned(as_node, transition, settings):
    """Where the settings ask for none."""
    (mark,) = patches(as_node(), transition(), settings(taint=""))
    assert "taint" not in mark.metadata["annotations"]["muster.dev/quarantine"]


def test_others_can_be_asked_to_drain_the_node(as_node, transition, settings):
    """By an annotation of their choice, until it is tested."""
    hinting = settings(drain_hint="example.com/drain=please")
    mark, *_ = patches(as_node(), transition(), hinting)
    assert mark.metadata["annotations"]["example.com/drain"] == "please"
    testing, *_ = patches(as_node(spec=OUT, **marked()), transition("PROBATION"), hinting)
    assert [*testing.metadata["annotations"]] == ["muster.dev/quarantine"]
