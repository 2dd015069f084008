"""Whose word it is that a node gets work or none: a table of nodes."""

import pytest

from muster import Mark
from muster.model import Json
from muster_plugins.schedulers.kubernetes.marks import (
    describe_others_mark,
    has_opted_out,
    mark_owner,
    our_mark,
    why_left,
)
from muster_plugins.schedulers.kubernetes.planned_departure import leaving

MARK = '{"transition": "t1", "state": "CORDONED", "reason": "because", "since": "2027-01-15T08:00:00Z"}'
MARKED = {"annotations": {"muster.dev/quarantine": MARK}}
STATE = "muster.dev/service-state"
CORDONED = {"unschedulable": True}
STARTUP = {"taints": [{"key": "muster.dev/accepting", "value": "x", "effect": "NoExecute"}]}
QUARANTINE = {"key": "muster.dev/quarantine", "value": "by-hand", "effect": "NoSchedule"}

MARKS = {
    "in service": ({}, {}, Mark.NONE),
    "cordoned by us": (MARKED, CORDONED, Mark.OURS),
    "uncordoned by a person": (MARKED, {}, Mark.UNDONE),
    "uncordoned by a person, who took the mark off": ({"labels": {STATE: "cordoned"}}, {}, Mark.UNDONE),
    "let back by us": ({"labels": {STATE: "in-service"}}, {}, Mark.NONE),
    "cordoned by a person": ({}, CORDONED, Mark.FOREIGN),
    "with a mark that somebody has changed": (
        {"annotations": {"muster.dev/quarantine": "mine"}},
        CORDONED,
        Mark.FOREIGN,
    ),
    "with such a mark, and in service": ({"annotations": {"muster.dev/quarantine": "{}"}}, {}, Mark.NONE),
    "new": ({}, STARTUP, Mark.OURS),
    "new and cordoned by a person": ({}, {**STARTUP, **CORDONED}, Mark.FOREIGN),
    "with a taint of somebody else": ({}, {"taints": [{"key": "a", "effect": "NoSchedule"}]}, Mark.NONE),
    "with our taint and no mark": ({}, {"taints": [QUARANTINE]}, Mark.FOREIGN),
    "with our key and another effect": ({}, {"taints": [{**QUARANTINE, "effect": "NoExecute"}]}, Mark.NONE),
}


@pytest.mark.parametrize(("metadata", "spec", "mark"), MARKS.values(), ids=MARKS)
def test_a_cordon_is_ours_while_our_mark_is_there(as_node, settings, metadata, spec, mark):
    """And the mark without a cordon is one that somebody has undone."""
    node = as_node(spec=spec, **metadata)
    assert mark_owner(node, settings()) is mark
    ours = our_mark(node, settings())
    assert (ours.transition if ours else None) == ("t1" if metadata == MARKED else None)


LEFT = {
    "in service": ({}, {}, None, None),
    "ours": (MARKED, CORDONED, None, None),
    "cordoned by a person": ({}, CORDONED, "cordoned by somebody else", "cordoned by somebody else"),
    "uncordoned by a person": (MARKED, {}, "somebody has uncordoned it since", None),
    "new": ({}, STARTUP, None, None),
    "opted out": ({"labels": {"muster.dev/opt-out": "true"}}, {}, "has opted out", "has opted out"),
    "opted out while it is ours": (
        {"labels": {"muster.dev/opt-out": "true"}, **MARKED}, CORDONED, "has opted out", "has opted out",
    ),
    "not opted out": ({"labels": {"muster.dev/opt-out": "false"}}, {}, None, None),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_what_others_say_is_respected(as_node, transition, settings, case):
    """What a person has uncordoned may only be uncordoned, which tidies up after us."""
    metadata, spec, out, back = case
    node = as_node(spec=spec, **metadata)
    for after, expected in (("CORDONED", out), ("IN_SERVICE", back), ("HELD", back)):
        why = why_left(node, transition(after), settings())
        assert (expected in (why or "")) if expected else why is None


@pytest.mark.parametrize("label", ["cordoned", None])
def test_what_a_person_asks_for_after_an_uncordon_is_done(as_node, transition, settings, label):
    """A release is newer than the uncordon of an earlier decision, which its mark names; the label alone names none."""
    node = as_node(labels={STATE: label}) if label else as_node(**MARKED)
    released = transition("PROBATION").model_copy(update={"id": "t2", "by": "ada"})
    assert why_left(node, released, settings()) is None
    assert why_left(node, released.model_copy(update={"by": None}), settings()) is not None
    undone = as_node(annotations={"muster.dev/quarantine": MARK.replace("t1", "t2")})
    assert "somebody has uncordoned it since" in (why_left(undone, released, settings()) or "")


@pytest.fixture
def cordoned_by(as_node):
    """Makes a node whose cordon these have wanted: `cordoned_by(("muster", "Apply"), **MARKED)`."""

    def make(*writers, **metadata):
        written: Json = {"f:spec": {"f:unschedulable": {}}}
        known = [{"manager": manager, "operation": operation, "fieldsV1": written} for manager, operation in writers]
        return as_node(spec=CORDONED, managedFields=known, **metadata)

    return make


def test_a_cordon_without_our_mark_is_ours_while_nobody_else_wants_it(cordoned_by, settings):
    """The API server remembers who does; only what we have applied counts, not what is merely called like us."""
    assert mark_owner(cordoned_by(("muster", "Apply")), settings()) is Mark.OURS
    assert mark_owner(cordoned_by(("muster", "Update")), settings()) is Mark.FOREIGN
    assert mark_owner(cordoned_by(("muster", "Apply"), ("argocd", "Apply")), settings()) is Mark.FOREIGN


def test_a_cordon_with_our_mark_is_ours_unless_only_others_want_it(cordoned_by, settings):
    """As when somebody has uncordoned the node and cordoned it again before we looked."""
    assert mark_owner(cordoned_by(**MARKED), settings()) is Mark.OURS
    assert mark_owner(cordoned_by(("muster", "Apply"), **MARKED), settings()) is Mark.OURS
    assert mark_owner(cordoned_by(("muster", "Apply"), ("argocd", "Apply"), **MARKED), settings()) is Mark.OURS
    assert mark_owner(cordoned_by(("kubectl-cordon", "Update"), **MARKED), settings()) is Mark.FOREIGN


def test_our_mark_beside_a_cordon_of_others_goes_when_the_node_is_uncordoned(cordoned_by, transition, settings):
    """Since nobody would take it away later; until then nothing is done to the node."""
    theirs = cordoned_by(("kubectl-cordon", "Update"), **MARKED)
    assert "cordoned with kubectl-cordon" in (why_left(theirs, transition("PROBATION"), settings()) or "")
    assert why_left(theirs, transition("IN_SERVICE"), settings()) is None


def test_keys_can_be_set(as_node, settings):
    """Of the mark, of the label that keeps us off, and of the taint of new nodes."""
    other = settings(prefix="example.com", opt_out="example.com/keep=please", startup_taint="example.com/new")
    assert mark_owner(as_node(spec=CORDONED, annotations={"example.com/quarantine": MARK}), other) is Mark.OURS
    assert mark_owner(as_node(spec=CORDONED, **MARKED), other) is Mark.FOREIGN
    assert (
        mark_owner(as_node(spec={"taints": [{"key": "example.com/new", "effect": "NoSchedule"}]}), other) is Mark.OURS
    )
    assert has_opted_out(as_node(labels={"example.com/keep": "please"}), other)


def test_a_cordon_names_the_program_that_set_it(as_node):
    """As far as the API server has kept that."""
    writers = [
        {"manager": "kubelet", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:status": {}}},
        {"manager": "kubectl-cordon", "time": "2026-02-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
    ]
    ours = {"manager": "muster", "operation": "Apply", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    for known in (writers, [ours, *writers]):
        by_kubectl = as_node(spec=CORDONED, managedFields=known)
        assert describe_others_mark(by_kubectl) == "cordoned with kubectl-cordon at 2026-02-01T00:00:00Z"
    assert describe_others_mark(as_node(spec=CORDONED)) == "cordoned by somebody else"
    assert describe_others_mark(as_node()) == "tainted by somebody else"


def tainted(key):
    return {
        "spec": {"taints": [{"key": "example.com/other", "effect": "NoSchedule"}, {"key": key, "effect": "NoExecute"}]}
    }


SHUTTING_DOWN = {"type": "Ready", "status": "False", "message": "[container runtime is down, node is shutting down]"}

LEAVING = {
    "stays": ({"spec": {"taints": [{"key": "example.com/other", "effect": "NoSchedule"}]}}, None),
    "is deleted": ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "being deleted"),
    "is scaled down": (tainted("ToBeDeletedByClusterAutoscaler"), "cluster autoscaler removes it"),
    "may be scaled down some day": (tainted("DeletionCandidateOfClusterAutoscaler"), None),
    "is consolidated": (tainted("karpenter.sh/disrupted"), "Karpenter removes it"),
    "is shut down": (tainted("node.cloudprovider.kubernetes.io/shutdown"), "machine is being shut down"),
    "is ended by Google": (tainted("cloud.google.com/impending-node-termination"), "Google Cloud ends"),
    "is maintained": ({"labels": {"cloud.google.com/active-node-maintenance": "ONGOING"}}, "maintains its host"),
    "will be maintained": ({"labels": {"cloud.google.com/active-node-maintenance": "PENDING"}}, None),
    "gets a driver": ({"labels": {"nvidia.com/gpu-driver-upgrade-state": "drain-required"}}, "upgrades its driver"),
    "will get a driver": ({"labels": {"nvidia.com/gpu-driver-upgrade-state": "upgrade-required"}}, None),
    "has its driver": ({"labels": {"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}}, None),
    "is NVSentinel's": ({"labels": {"dgxc.nvidia.com/nvsentinel-state": "draining"}}, "NVSentinel has quarantined it"),
    "is taken back by AWS": (tainted("aws-node-termination-handler/spot-itn"), "reclaims its spot machine"),
    "reboots": ({"status": {"conditions": [SHUTTING_DOWN]}}, "its host is shutting down"),
    "is not ready": ({"status": {"conditions": [{"type": "Ready", "status": "False", "message": "no CNI"}]}}, None),
}  # fmt: skip


@pytest.mark.parametrize(("node", "expected"), LEAVING.values(), ids=LEAVING)
def test_a_node_that_leaves_says_why(as_node, node, expected):
    """So that it is not taken for a failure."""
    why = leaving(as_node(**node))
    assert (expected in (why or "")) if expected else why is None
