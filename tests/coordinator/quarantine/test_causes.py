"""What a node is drained for: the findings that count, as every transition has them until the node is back."""

from typing import Any

from muster.model import ServiceState, Verdict
from muster.transition import Cause, Mark
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_events import DispatchTransition, EvidenceChanged, NodeNotListed

GONE = Cause(code="nvml.gone", check="nvml", device=0, summary="found", since=1_000_000.0)


def find(told: Any, node: str, *findings: Any) -> None:
    told.tell(EvidenceChanged(node=node, findings=findings, is_fit=False))


def shorts(told: Any, node: str) -> list[str]:
    """The causes of the latest transition."""
    return [cause.short for cause in told.transition(node).causes]


def test_a_cause_has_the_number_the_gpu_and_its_uuid(quarantine: Any) -> None:
    """As the finding has them; the case and the transition say the same."""
    told = quarantine(2)
    xid = {"evidence": {"xid": 79}, "device": 3, "uuid": "GPU-5c1d", "summary": "it has fallen off the bus"}
    find(told, "a", told.charge("gemm.driver", **xid))
    assert told.transition("a").causes == told.case("a").causes
    (cause,) = told.case("a").causes
    assert (cause.short, cause.check, cause.uuid) == ("XID 79 GPU3", "gemm", "GPU-5c1d")
    assert cause.summary == "it has fallen off the bus"


def test_the_worst_comes_first(quarantine: Any) -> None:
    """In the order of the rows, proven ones before the others; what no row drains for is no cause."""
    told = quarantine(2)
    slow, unproven = told.charge("gemm.slow"), told.charge("gemm.odd", Proof.ONCE)
    find(told, "a", told.charge("host.full"), unproven, slow, told.charge("nvml.gone"))
    assert shorts(told, "a") == ["gone GPU0", "slow GPU0", "odd GPU0"]


def test_what_two_checks_found_is_one_cause(quarantine: Any) -> None:
    """The same code and number on the same GPU; on another GPU it is another."""
    told = quarantine(2)
    found = told.charge("gemm.driver", evidence={"xid": 79})
    again, there = (found.model_copy(update=changed) for changed in ({"check": "nvml"}, {"device": 1}))
    find(told, "a", found, again, there)
    assert shorts(told, "a") == ["XID 79 GPU0", "XID 79 GPU1"]


def test_more_than_eight_are_not_named(quarantine: Any) -> None:
    """No list shows more, and a node can find as many as it likes."""
    told = quarantine(2)
    find(told, "a", *(told.charge("gemm.slow", device=device) for device in range(20)))
    assert shorts(told, "a") == [f"slow GPU{device}" for device in range(8)]


def test_they_stay_until_the_node_is_back(quarantine: Any) -> None:
    """Also when nothing stands against it any more and when it fails its tests with something else."""
    told = quarantine(2)
    told.accuse("a", "nvml.gone")
    told.absolve("a")
    assert (told.transition("a").after, told.transition("a").causes) == (ServiceState.PROBATION, (GONE,))
    find(told, "a", told.charge("gemm.slow"))
    told.end_test("a", Verdict.FAIL)
    assert (told.transition("a").after, told.transition("a").causes) == (ServiceState.CORDONED, (GONE,))
    told.release("a", untested=True)
    assert (told.transition("a").after, told.transition("a").causes) == (ServiceState.IN_SERVICE, ())
    told.absolve("a")
    assert told.case("a").causes == ()


def test_a_node_that_left_while_it_was_out_keeps_them(quarantine: Any) -> None:
    """Actors are told again what it was cordoned for when it comes back."""
    told = quarantine(3)
    told.survey("a", Mark.NONE)
    told.accuse("a", "nvml.gone")
    told.lose("a")
    told.tell(NodeNotListed(actor="k8s", node="a"))
    told.absolve("a")
    dispatched = [it for it in told.hear("a") if isinstance(it, DispatchTransition)]
    again = [(it.record.transition.after, it.record.transition.causes) for it in dispatched]
    assert again == [(ServiceState.CORDONED, (GONE,)), (ServiceState.PROBATION, (GONE,))]


def test_a_node_that_waits_says_what_for(quarantine: Any) -> None:
    """In its case and to those who are told that it is HELD; with the evidence it changes."""
    told = quarantine(1)
    told.accuse("a", "nvml.gone")
    assert (told.transition("a").after, told.transition("a").causes) == (ServiceState.HELD, (GONE,))
    told.accuse("a", "gemm.slow")
    assert [cause.short for cause in told.case("a").causes] == ["slow GPU0"]


def test_observe_mode_says_the_causes_too(quarantine: Any) -> None:
    """They are what the list of nodes shows."""
    told = quarantine(2, mode="observe")
    told.accuse("a", "nvml.gone")
    assert (told.state("a"), told.case("a").causes) == (ServiceState.IN_SERVICE, (GONE,))


def test_a_stored_record_without_causes_gets_them(quarantine: Any) -> None:
    """A node that an earlier release drained: what stands against it now is the best that is known."""
    told = quarantine(2)
    told.accuse("a", "nvml.gone")
    stored = told.records["a"].model_dump(mode="json")
    del stored["decision"]["causes"], stored["evidence"]["findings"][0]["uuid"]
    told.records["a"] = QuarantineRecord.model_validate(stored)
    told.restart()
    assert told.case("a").causes == ()
    told.wait(1)
    assert told.case("a").causes == (GONE,)
