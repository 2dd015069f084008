"""What is to be changed on a node in Slurm, for every way in which Slurm may have it."""

import pytest
from tests.cases import cases

from muster import Cause, Effect, Mark, Transition
from muster.labels import valid_labels
from muster.model import ServiceState
from muster_plugins.schedulers.slurm.decision import decide
from muster_plugins.schedulers.slurm.marks import SlurmHold, hold
from muster_plugins.schedulers.slurm.names import Names
from muster_plugins.schedulers.slurm.nodes import SlurmNode, read_nodes
from muster_plugins.schedulers.slurm.survey import scheduler_node

OURS = "muster: gpu.ecc [1-7]"
BEFORE = "muster:1-7 cordoned: gpu.ecc"
TEST = "muster-test: collective in group 5f1c"

REBOOTING = ("IDLE", "DRAIN", "REBOOT_REQUESTED")

NODES = {
    "in service": (("IDLE",), "", ""),
    "to be rebooted": (("IDLE", "REBOOT_REQUESTED"), "firmware due", ""),
    "once drained": (("IDLE",), "bad fan", ""),
    "once ours": (("IDLE",), "muster: x; before: new kernel [1-2]", ""),
    "commented": (("MIXED",), "", "RMA 17"),
    "ours": (("IDLE", "DRAIN"), OURS, "RMA 17 [muster:1-7]"),
    "ours, gone": (("DOWN", "DRAIN", "NOT_RESPONDING"), OURS, "[muster:1-7]"),
    "ours, unmarked": (("IDLE", "DRAIN"), OURS, "RMA 17"),
    "ours of before": (("IDLE", "DRAIN"), "muster: x [1-2]", "[muster:1-2]"),
    "ours of before, to be rebooted": (REBOOTING, "muster: x; before: new kernel [1-2]", "[muster:1-2]"),
    "ours of before, rebooted": (("IDLE", "DRAIN"), "muster: x; before: new kernel [1-2]", "[muster:1-2]"),
    "ours, silent": (("DOWN", "DRAIN", "NOT_RESPONDING"), f"{OURS} : Not responding", "[muster:1-7]"),
    "ours, rebooting": (("DOWN", "DRAIN", "REBOOT_ISSUED"), f"{OURS} : reboot issued", "[muster:1-7]"),
    "ours, rebooted twice": (
        ("IDLE", "DRAIN"),
        f"{OURS} : reboot issued : Not responding : Node unexpectedly rebooted",
        "[muster:1-7]",
    ),
    "ours, but Slurm has more": (("IDLE", "DRAIN"), f"{OURS} : Kill task failed", "[muster:1-7]"),
    "ours, earlier version": (("IDLE", "DRAIN"), BEFORE, "[muster:1-7]"),
    "ours of before, earlier version": (REBOOTING, "muster:1-2 cordoned: x; before: fan [2]", "[muster:1-2]"),
    "undone": (("IDLE",), "", "[muster:1-7]"),
    "undone, tested": (("IDLE", "DRAIN"), TEST, "[muster:1-7]"),
    "undone, gone": (("DOWN",), "Not responding", "[muster:1-7]"),
    "undone before": (("IDLE",), "", "[muster:1-2]"),
    "overwritten": (("IDLE", "DRAIN"), "bad fan", "[muster:1-7]"),
    "tested": (("IDLE", "DRAIN"), TEST, ""),
    "tested, to be rebooted": (REBOOTING, f"{TEST}; before: new kernel", ""),
    "gone": (("DOWN", "NOT_RESPONDING"), "Not responding", ""),
    "once drained, gone": (("DOWN", "NOT_RESPONDING"), "bad fan : Not responding", ""),
    "gone under test": (("DOWN",), TEST, ""),
    "theirs": (("IDLE", "DRAIN"), "bad fan", ""),
    "theirs, no reason": (("IDLE", "DRAIN"), "", ""),
    "theirs, down": (("DOWN",), "pulled", ""),
    "failing": (("IDLE", "FAIL", "DRAIN"), OURS, ""),
    "reads like ours": (("IDLE", "DRAIN"), "muster: look at this", ""),
    "reads like ours, too": (("IDLE", "DRAIN"), "muster: look at this [ticket 17]", ""),
}
"""State, reason and comment."""


def node(kind, **changed):
    state, reason, comment = NODES[kind]
    return SlurmNode(name="gpu1", state=state, reason=reason, reason_by="op@t", comment=comment, **changed)


def transition(after, **changed):
    told = {"id": "1-7", "node": "gpu1", "before": "IN_SERVICE", "after": after, "reason": "gpu.ecc", "at": 1.0}
    return Transition.model_validate(told | changed)


def drain(reason=OURS, comment="[muster:1-7]"):
    return {"State": "DRAIN", "Reason": reason, "Comment": comment}


OUT = {
    "in service": (Effect.DONE, drain()),
    "to be rebooted": (Effect.DONE, drain("muster: gpu.ecc; before: firmware due [1-7]")),
    "once drained": (Effect.DONE, drain()),
    "once ours": (Effect.DONE, drain()),
    "commented": (Effect.DONE, drain(comment="RMA 17 [muster:1-7]")),
    "ours": (Effect.DONE, {}),
    "ours, gone": (Effect.DONE, {}),
    "ours, unmarked": (Effect.DONE, drain(comment="RMA 17 [muster:1-7]")),
    "ours of before": (Effect.DONE, drain()),
    "ours of before, to be rebooted": (Effect.DONE, drain("muster: gpu.ecc; before: new kernel [1-7]")),
    "ours of before, rebooted": (Effect.DONE, drain()),
    "ours, silent": (Effect.DONE, {}),
    "ours, rebooting": (Effect.DONE, {}),
    "ours, rebooted twice": (Effect.DONE, {}),
    "ours, but Slurm has more": (Effect.LEFT, {}),
    "ours, earlier version": (Effect.DONE, {}),
    "ours of before, earlier version": (Effect.DONE, drain("muster: gpu.ecc; before: fan [2] [1-7]")),
    "undone": (Effect.LEFT, {}),
    "undone, tested": (Effect.LEFT, {}),
    "undone, gone": (Effect.LEFT, {}),
    "undone before": (Effect.DONE, drain()),
    "overwritten": (Effect.LEFT, {}),
    "tested": (Effect.DONE, drain()),
    "tested, to be rebooted": (Effect.DONE, drain("muster: gpu.ecc; before: new kernel [1-7]")),
    "gone": (Effect.DONE, drain()),
    "once drained, gone": (Effect.DONE, drain()),
    "gone under test": (Effect.DONE, drain()),
    "theirs": (Effect.LEFT, {}),
    "theirs, no reason": (Effect.LEFT, {}),
    "theirs, down": (Effect.LEFT, {}),
    "failing": (Effect.LEFT, {}),
    "reads like ours": (Effect.LEFT, {}),
    "reads like ours, too": (Effect.LEFT, {}),
}

UNMARK = {"Comment": ""}
BACK = {
    "in service": (Effect.DONE, {}),
    "to be rebooted": (Effect.DONE, {}),
    "once drained": (Effect.DONE, {}),
    "once ours": (Effect.DONE, {}),
    "commented": (Effect.DONE, {}),
    "ours": (Effect.DONE, {"State": "UNDRAIN", "Comment": "RMA 17"}),
    "ours, gone": (Effect.DONE, {"State": "RESUME", **UNMARK}),
    "ours, unmarked": (Effect.DONE, {"State": "UNDRAIN"}),
    "ours of before": (Effect.DONE, {"State": "UNDRAIN", **UNMARK}),
    "ours of before, to be rebooted": (Effect.DONE, {"State": "UNDRAIN", **UNMARK}),
    "ours of before, rebooted": (Effect.DONE, {"State": "UNDRAIN", **UNMARK}),
    "ours, silent": (Effect.DONE, {"State": "RESUME", **UNMARK}),
    "ours, rebooting": (Effect.DONE, {"State": "RESUME", **UNMARK}),
    "ours, rebooted twice": (Effect.DONE, {"State": "UNDRAIN", **UNMARK}),
    "ours, but Slurm has more": (Effect.LEFT, UNMARK),
    "ours, earlier version": (Effect.DONE, {"State": "UNDRAIN", **UNMARK}),
    "ours of before, earlier version": (Effect.DONE, {"State": "UNDRAIN", **UNMARK}),
    "undone": (Effect.DONE, UNMARK),
    "undone, tested": (Effect.DONE, UNMARK),
    "undone, gone": (Effect.DONE, UNMARK),
    "undone before": (Effect.DONE, UNMARK),
    "overwritten": (Effect.LEFT, UNMARK),
    "tested": (Effect.DONE, {}),
    "tested, to be rebooted": (Effect.DONE, {}),
    "gone": (Effect.DONE, {}),
    "once drained, gone": (Effect.DONE, {}),
    "gone under test": (Effect.DONE, {}),
    "theirs": (Effect.LEFT, {}),
    "theirs, no reason": (Effect.LEFT, {}),
    "theirs, down": (Effect.LEFT, {}),
    "failing": (Effect.LEFT, {}),
    "reads like ours": (Effect.LEFT, {}),
    "reads like ours, too": (Effect.LEFT, {}),
}

MARKS = {
    Mark.NONE: {
        "in service",
        "to be rebooted",
        "once drained",
        "once ours",
        "commented",
        "tested",
        "tested, to be rebooted",
        "gone",
        "once drained, gone",
        "gone under test",
    },
    Mark.OURS: {
        "ours",
        "ours, gone",
        "ours, unmarked",
        "ours of before",
        "ours of before, to be rebooted",
        "ours of before, rebooted",
        "ours, silent",
        "ours, rebooting",
        "ours, rebooted twice",
        "ours, earlier version",
        "ours of before, earlier version",
    },
    Mark.UNDONE: {"undone", "undone, tested", "undone, gone", "undone before"},
    Mark.FOREIGN: {
        "overwritten",
        "theirs",
        "theirs, no reason",
        "theirs, down",
        "failing",
        "ours, but Slurm has more",
        "reads like ours",
        "reads like ours, too",
    },
}


@cases("kind", NODES)
@cases(("after", "table"), [("CORDONED", OUT), ("IN_SERVICE", BACK)])
def test_the_step_for_a_transition(kind, after, table):
    """Only what is missing is changed, and nothing that others did."""
    step = decide(node(kind), transition(after), "opted_out")
    assert (step.effect, dict(step.update)) == table[kind]


@cases("kind", NODES)
@cases("after", ServiceState)
@cases("keeps_reasons", [False, True])
def test_a_step_that_was_taken_is_not_taken_again(kind, after, keeps_reasons):
    """Told twice, a transition changes a node once, also where Slurm keeps the reason of a node that is back."""
    before = node(kind)
    update = decide(before, transition(after), "opted_out").update
    told = as_slurm_would(before, update, keeps_reasons=keeps_reasons)
    assert not decide(told, transition(after), "opted_out").update


def as_slurm_would(before, update, *, keeps_reasons):
    """The node after the update: Slurm 22.05 forgets the reason of a node that is back, and Slurm 24.11 keeps it."""
    state, reason = before.state, update.get("Reason", before.reason)
    if update.get("State") == "DRAIN":
        state = (*[flag for flag in state if flag != "DRAIN"], "DRAIN")
    elif "State" in update:
        state, reason = ("IDLE",), reason if keeps_reasons else ""
    comment = update.get("Comment", before.comment)
    return SlurmNode(name="gpu1", state=state, reason=reason, comment=comment)


@cases("after", ServiceState)
def test_a_node_that_has_opted_out_is_left_alone(after):
    """Whatever stands beside it."""
    step = decide(node("ours", features=("h100", "mine")), transition(after), "mine")
    assert (step.effect, step.update) == (Effect.LEFT, {})
    assert "feature mine" in step.detail


@cases("kind", NODES)
def test_the_mark_of_a_node(kind):
    """What the coordinator is told about who keeps it out."""
    assert kind in MARKS[scheduler_node(node(kind), Names("", {}), "opted_out").mark]


def test_what_others_wrote_is_told():
    """With who and when."""
    assert decide(node("theirs"), transition("CORDONED"), "x").detail == "IDLE+DRAIN: bad fan (op@t)"
    assert scheduler_node(node("theirs"), Names("", {}), "x").detail == "IDLE+DRAIN: bad fan (op@t)"
    assert "no reason given" in decide(node("theirs, no reason"), transition("CORDONED"), "x").detail


def test_a_drain_says_that_jobs_run_on():
    """And only where there are any."""
    assert decide(node("commented"), transition("CORDONED"), "x").detail.endswith("its jobs run to their end")
    assert "jobs" not in decide(node("in service"), transition("CORDONED"), "x").detail


def test_a_drain_says_what_was_found():
    """Without causes, as of a coordinator of an earlier version, the codes and the reason."""
    told = transition("CORDONED", codes=("nvml.device_lost", "nvml.xid"), reason="A GPU no longer answers")
    update = decide(node("in service"), told, "x").update
    assert update["Reason"] == "muster: nvml.device_lost, nvml.xid: A GPU no longer answers [1-7]"


UUID = "GPU-5c1d2e3f-1111-2222-3333-444455556666"
BUS = Cause(
    code="kernel_log.xid", check="kernel_log", device=3, uuid=UUID, xid=79, summary="XID 79, GPU has fallen off the bus"
)


@pytest.mark.parametrize(
    ("after", "begin"), [("CORDONED", "muster: XID 79 GPU3"), ("PROBATION", "muster: XID 79 GPU3, retest")]
)
def test_a_drain_says_its_cause_first(after, begin):
    """So that the first 20 characters tell; the id comes last, and a retest keeps the cause."""
    told = transition(after, codes=("kernel_log.xid",), causes=(BUS,), action="REBOOT_NODE", reason="policy row lost")
    update = decide(node("in service"), told, "x").update
    assert update["Reason"] == f"{begin}: GPU has fallen off the bus; reboot the node; {UUID} [1-7]"


def test_many_causes_leave_the_id_whole():
    """The end of the list is cut; the id is not."""
    told = transition("CORDONED", causes=(BUS,) * 40, id="t1795393028-1")
    line = decide(node("in service"), told, "x").update["Reason"]
    assert line.endswith(" [t1795393028-1]")
    assert len(line.encode()) == 250


@pytest.mark.parametrize("reason", ["two\nlines\tand\0more", "ü" * 400, "x" * 400])
def test_a_reason_is_one_line_that_the_accounting_can_keep(reason):
    """And still ours when it is cut."""
    line = decide(node("in service"), transition("ACCEPTING", reason=reason), "x").update["Reason"]
    assert line.startswith(f"muster: {reason[:3]}")
    assert line.endswith(" [1-7]")
    assert line.isprintable()
    assert len(line.encode()) <= 250
    assert hold(SlurmNode(name="gpu1", state=("IDLE", "DRAIN"), reason=line)) is SlurmHold.QUARANTINE


@cases(
    "text", ["ssh to [a@b] failed", "root at prompt [root@gpu01]: x", "x Comment=y", "a InstanceId=b", "op [7] [1-8]"]
)
@cases("where", ["finding", "note"])
def test_a_text_that_looks_like_slurms_own_does_not_make_our_drain_somebody_elses(text, where):
    """Slurm shows `Reason=… [who@when] Comment=…`; what a node or a person wrote before must not end the reason."""
    noted = SlurmNode(name="gpu1", state=("IDLE", "REBOOT_REQUESTED"), reason=text if where == "note" else "")
    cause = BUS.model_copy(update={"summary": text})
    line = decide(noted, transition("CORDONED", causes=(cause,)), "x").update["Reason"]
    shown = f"NodeName=gpu1 State=IDLE+DRAIN Reason={line} [root@2026-03-01T09:30:00] Comment=[muster:1-7]"
    (read,) = read_nodes(shown)
    assert (read.reason, read.reason_by, read.comment) == (line, "root@2026-03-01T09:30:00", "[muster:1-7]")
    assert hold(read) is SlurmHold.QUARANTINE


@cases("note", ["ü" * 400, "new kernel", "muster:1-1 x; before: muster-test: y", "muster: x; before: fan [9-9]"])
@cases("reason", ["ü" * 400, "gpu.ecc"])
def test_what_others_wrote_goes_from_reason_to_reason(reason, note):
    """Neither it nor our own words take all the room, and it gets no meaning by what it says."""
    there, ends = SlurmNode(name="gpu1", state=("IDLE", "REBOOT_REQUESTED"), reason=f"op: {note}"), set()
    for event in ("1-7", "1-8", "1-9"):
        line = decide(there, transition("CORDONED", id=event, reason=reason), "x").update["Reason"]
        ours, before = line.split("; before: ", 1)
        assert ours.startswith(f"muster: {reason[:40]}")
        assert len(line.encode()) <= 250
        assert before.endswith(f" [{event}]")
        ends.add(before.removesuffix(f" [{event}]"))
        there = SlurmNode(name="gpu1", state=REBOOTING, reason=line)
        assert hold(there) is SlurmHold.QUARANTINE
    (end,) = ends
    assert f"op: {note}".startswith(end)
    assert len(end) >= min(len(note), 50)


def test_a_node_by_its_name_in_muster():
    """A domain is added, and exceptions go before that."""
    names = Names(".example", {"first": "gpu1"})
    assert (names.in_slurm("gpu2.example"), names.in_slurm("first")) == ("gpu2", "gpu1")
    assert (names.in_muster("gpu2"), names.in_muster("gpu1")) == ("gpu2.example", "first")


@pytest.mark.parametrize("name", ["gpu2", "gpu1.example", "gpu1"])
def test_a_node_that_slurm_would_be_said_to_call_otherwise_is_none_of_its(name):
    """It would be drained, and what people do with it in Slurm would not be seen."""
    assert Names(".example", {"first": "gpu1"}).in_slurm(name) is None


@cases(
    ("state", "leaving"),
    [
        (("IDLE",), None),
        (("IDLE", "RESERVED"), None),
        (("IDLE", "POWERING_DOWN"), "Slurm is powering it down"),
        (("ALLOCATED", "REBOOT_REQUESTED"), "Slurm plans to reboot it"),
        (("DOWN", "REBOOT_ISSUED"), "Slurm is rebooting it"),
        (("IDLE", "MAINTENANCE"), "it is reserved for maintenance"),
    ],
)
def test_a_node_that_goes_as_planned(state, leaving):
    """Is told so, that nobody takes it for a failure."""
    surveyed = scheduler_node(SlurmNode(name="gpu1", state=state), Names("", {}), "x")
    assert surveyed.leaving == leaving


def test_features_and_partitions_are_labels():
    """Each as one, by which nodes can be selected; what cannot be the name of one is left out."""
    there = SlurmNode(name="gpu1", state=("IDLE",), features=("h100", "ib-400", "gpu:8", "-"), partitions=("main",))
    labels = scheduler_node(there, Names("", {}), "x").labels
    assert labels == {"feature.slurm/h100": "true", "feature.slurm/ib-400": "true", "partition.slurm/main": "true"}
    assert valid_labels(labels)
