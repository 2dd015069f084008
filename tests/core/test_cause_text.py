"""Why a node is out of service, in one line that lists cut."""

import pytest
from tests.cases import cases

from muster import Action, Cause, Transition, cause_text
from muster.model import ServiceState

UUID = "GPU-5c1d2e3f-1111-2222-3333-444455556666"
BUS = Cause(
    code="kernel_log.xid",
    check="kernel_log",
    device=3,
    uuid=UUID,
    xid=79,
    summary="XID 79, GPU has fallen off the bus",
)
NVLINK = Cause(code="nvml.xid", check="nvml", device=2, xid=74)
SWITCH = Cause(
    code="kernel_log.sxid", check="kernel_log", sxid=12028, summary="SXID 12028, Egress non-posted PRIV error"
)
ECC = Cause(
    code="nvml.ecc_uncorrected", check="nvml", device=0, uuid=UUID, summary="2 uncorrected memory errors since boot"
)
MISSING = Cause(code="nvml.devices_missing", check="nvml", summary="7 of 8 GPUs: index 7 missing")


def text(*causes, after=ServiceState.CORDONED, action=Action.REBOOT_NODE, reason="policy row x"):
    told = {"id": "t17-4", "node": "n1", "before": "IN_SERVICE", "at": 1.0}
    return cause_text(
        Transition.model_validate({**told, "after": after, "reason": reason, "action": action, "causes": causes})
    )


@cases(
    ("causes", "action", "said"),
    [
        ([BUS], "REBOOT_NODE", f"XID 79 GPU3: GPU has fallen off the bus; reboot the node; {UUID}"),
        ([SWITCH], "RESET_GPU", "SXID 12028: Egress non-posted PRIV error; reset the GPU"),
        ([ECC], "RESET_GPU", f"ECC UE GPU0: nvml.ecc_uncorrected; reset the GPU; {UUID}; {ECC.summary}"),
        ([MISSING], "INSPECT_HARDWARE", f"GPUs missing: nvml.devices_missing; inspect the hardware; {MISSING.summary}"),
        ([NVLINK], "NONE", "XID 74 GPU2"),
        (
            [BUS, NVLINK, ECC],
            "REPLACE",
            f"XID 79 GPU3: GPU has fallen off the bus; replace the hardware; {UUID}"
            "; +2 more: XID 74 GPU2, nvml.ecc_uncorrected GPU0",
        ),
    ],
)
def test_the_worst_cause_comes_first(causes, action, said):
    """Error and GPU, then what it is, what to do, the UUID, and the other causes."""
    assert text(*causes, action=Action(action)) == said


@pytest.mark.parametrize(
    ("most", "shown"),
    [
        (20, "muster: XID 79 GPU3:"),
        (60, "muster: XID 79 GPU3: GPU has fallen off the bus; reboot the "),
        (119, f"muster: XID 79 GPU3: GPU has fallen off the bus; reboot the node; {UUID}"),
    ],
)
def test_the_important_stands_within_what_lists_show(most, shown):
    """The first 20, 60 and 120 characters of Slurm's reason."""
    assert f"muster: {text(BUS)}"[:most] == shown


@cases("action", [it for it in Action if it is not Action.NONE])
@cases("after", [ServiceState.CORDONED, ServiceState.PROBATION])
def test_a_long_summary_does_not_push_the_uuid_away(after, action):
    """It is shortened, and enough of it stays."""
    said = text(BUS.model_copy(update={"summary": "x" * 200}), after=after, action=action)
    assert f"muster: {said}"[:120].endswith(UUID)
    assert "x" * 15 + "...; " in said


def test_a_retest_keeps_the_cause():
    """An operator still sees why the node is away."""
    assert text(BUS, after=ServiceState.PROBATION).startswith("XID 79 GPU3, retest: GPU has fallen off the bus; ")


@pytest.mark.parametrize("summary", ["ecc_uncorrected_volatile 2 is above 0", "ecc_uncorrected twice"])
def test_a_summary_that_begins_like_the_label_stays_whole(summary):
    """Only a label that stands apart is left out."""
    said = text(ECC.model_copy(update={"summary": summary, "uuid": ""}), action=Action.NONE)
    assert said == f"ECC UE GPU0: nvml.ecc_uncorrected; {summary}"


@pytest.mark.parametrize(("causes", "after"), [((), "CORDONED"), ((BUS,), "IN_SERVICE")])
def test_where_no_finding_led_to_it_the_reason_is_said(causes, after):
    """A node that is back in service is no longer called by its old fault."""
    assert text(*causes, after=after, reason="it passed its tests") == "it passed its tests"


def test_a_node_that_waits_also_says_why():
    """Whoever is called must know what keeps a bad node at work."""
    said = text(NVLINK, after=ServiceState.HELD, action=Action.NONE, reason="the budget is used up")
    assert said == "XID 74 GPU2; the budget is used up"
