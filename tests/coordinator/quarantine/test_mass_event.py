"""Many nodes with the same trouble within a short time: nobody is taken out until that is over."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.errors import Refused
from muster.model import ServiceState
from muster.quarantine_settings import MassEventSettings
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.policy_row import Row
from muster_coordinator.model.quarantine_events import EvidenceChanged

Of = Callable[..., list[Any]]

BEGUN = (
    "Mass event: {} of 12 nodes report {}; draining frozen, {} already drained. To resume: `muster quarantine unfreeze`"
)
FIVE = MassEventSettings(nodes=5, share="1%", window_s=600)


def frozen(told: Any) -> list[str]:
    return [event.cause for event in told.reconciler.fleet_view().frozen]


def test_nothing_is_remembered_of_causes_that_are_over(quarantine: Any) -> None:
    """However many a node makes up, such as numbers of XIDs that there are not."""
    told = quarantine(1, rows=[Row(name="xid", codes=("*.xid",), reason="it is bad")], mode="observe")
    for number in range(100):
        charge = told.charge("nvml.xid", evidence={"xid": number})
        told.tell(EvidenceChanged(node="a", findings=(charge,), is_fit=False))
    told.absolve("a")
    assert not told.reconciler._records.nodes_by_cause


@pytest.fixture
def rollout(quarantine: Any) -> Any:
    """Twelve nodes, of which five have got the same trouble, the last just now."""
    told = quarantine(12, mass_event=FIVE)
    for name in "abcde":
        told.wait(10)
        told.accuse(name, "gemm.slow")
    return told


def test_the_fifth_node_freezes_all(rollout: Any, of: Of) -> None:
    """It and whoever comes after it stay in service, also with another trouble, and say why."""
    assert frozen(rollout) == ["gemm.slow"]
    rollout.accuse("f", "nvml.gone")
    assert rollout.states() == "CCCCIIIIIIII"
    assert rollout.case("f").held_because == "Draining paused fleet-wide: 5 nodes report gemm.slow"
    rollout.wait(0)
    assert of("alarms", rollout.said) == [BEGUN.format(5, "gemm.slow", 4)]


def test_the_story_of_each_says_once_that_it_stays(rollout: Any, of: Of) -> None:
    """Beside the requirement of the policy, which would be half of it."""
    stays = "stays IN_SERVICE: Draining paused fleet-wide: 5 nodes report gemm.slow"
    assert of("notes", rollout.accuse("f", "nvml.gone"))[-1] == stays
    assert stays not in of("notes", [*rollout.accuse("f", "nvml.gone"), *rollout.wait(1000)])


def test_it_is_said_once(rollout: Any, of: Of) -> None:
    """However many nodes follow, and as time passes."""
    for name in "fghij":
        rollout.accuse(name, "gemm.slow")
        rollout.wait(1000)
    assert len(of("alarms", rollout.said)) == 1
    assert rollout.reconciler.fleet_view().frozen[0].nodes >= 5


def test_nobody_is_told_of_each_node(rollout: Any, of: Of) -> None:
    """Of a thousand that are spared it is said once that they are; each can be seen to wait."""
    said = [*rollout.accuse("f", "nvml.gone"), *rollout.accuse("g", "gemm.slow")]
    assert of("acts", said) == []
    assert all(rollout.case(name).held_because for name in "efg")


def test_what_is_proven_no_more_waits_for_nothing(rollout: Any) -> None:
    """A node in service whose evidence has grown old is not said to be spared."""
    rollout.accuse("e", "gemm.slow", proof=Proof.ONCE)
    assert rollout.case("e").held_because == ""


def test_one_that_is_held_already_stays_so(quarantine: Any) -> None:
    """Its reason is that of now, and it goes when the event is over and there is room."""
    told = quarantine(12, mass_event=FIVE, budget={"domain_share": "100%", "per_minute": 6000, "nodes": 1})
    told.accuse("a", "nvml.gone")
    told.accuse("b", "nvml.gone")
    for name in "cdefg":
        told.accuse(name, "gemm.slow", proof=Proof.ONCE)
    told.wait(1)
    assert (told.state("b"), told.case("b").held_because.startswith("Draining paused")) == (ServiceState.HELD, True)
    told.absolve("c")
    told.let_in("a")
    told.wait(1)
    assert told.state("b") is ServiceState.CORDONED


def test_what_is_not_proven_yet_counts(quarantine: Any) -> None:
    """So that a roll-out that breaks all is noticed before the first second opinions are in."""
    told = quarantine(12, mass_event=FIVE)
    for name in "abcde":
        told.accuse(name, "gemm.slow", proof=Proof.ONCE)
    assert frozen(told) == ["gemm.slow"]
    for name in "abcde":
        told.accuse(name, "gemm.slow")
    assert told.states() == "IIIIIIIIIIII"
    assert all(told.case(name).held_because for name in "abcde")


def test_new_nodes_count(quarantine: Any) -> None:
    """A broken image for new nodes is no reason to take any out either."""
    told = quarantine(3, mass_event=FIVE)
    for name in ("n1", "n2", "n3", "n4", "n5"):
        told.add(name, fit=False)
        told.accuse(name, "gemm.slow")
    assert frozen(told) == ["gemm.slow"]


def test_slowly_growing_trouble_is_none(quarantine: Any) -> None:
    """Five nodes in a day are five bad nodes."""
    told = quarantine(12, mass_event=FIVE)
    for name in "abcdef":
        told.accuse(name, "gemm.slow")
        told.wait(601)
    assert frozen(told) == []
    assert told.states() == "CCCCCCIIIIII"


def test_different_troubles_are_none(quarantine: Any) -> None:
    """Six nodes at once with three troubles, two each."""
    told = quarantine(12, mass_event=FIVE)
    for name, code in zip("abcdef", ["gemm.slow", "gemm.wrong", "nvml.gone"] * 2, strict=True):
        told.accuse(name, code)
    assert frozen(told) == []


def test_each_error_of_a_driver_is_a_trouble_of_its_own(quarantine: Any, of: Of) -> None:
    """Three nodes with one XID and three with another have no cause in common, five with one have."""
    told = quarantine(12, mass_event=FIVE, rows=(Row(name="any", codes=("nvml.xid",), reason="it says so"),))
    for name, xid in zip("abcdef", [79, 48] * 3, strict=True):
        told.tell(EvidenceChanged(node=name, findings=(told.charge("nvml.xid", evidence={"xid": xid}),), is_fit=False))
    assert frozen(told) == []
    assert told.states() == "CCCCCCIIIIII"
    for name in "gh":
        told.tell(EvidenceChanged(node=name, findings=(told.charge("nvml.xid", evidence={"xid": 79}),), is_fit=False))
    assert frozen(told) == ["nvml.xid 79"]
    told.wait(0)
    assert of("alarms", told.said) == [BEGUN.format(5, "XID 79", 4)]


def test_of_many_nodes_it_takes_a_share(quarantine: Any) -> None:
    """Of 400 nodes 2 % are eight, and so many it takes."""
    told = quarantine(mass_event=MassEventSettings(nodes=5, share="2%"))
    told.add(*(f"n{number}" for number in range(400)))
    for number in range(7):
        told.accuse(f"n{number}", "gemm.slow")
    assert frozen(told) == []
    told.accuse("n7", "gemm.slow")
    assert frozen(told) == ["gemm.slow"]


def test_it_is_over_when_few_have_the_trouble(rollout: Any, of: Of) -> None:
    """Then it says so, and who waited goes by the evidence of now, not by that of then."""
    rollout.accuse("f", "gemm.slow")
    rollout.absolve("e")
    assert frozen(rollout) == ["gemm.slow"]
    rollout.wait(1)
    rollout.absolve("a")
    rollout.wait(1)
    assert of("alarms", rollout.wait(60)) == ["Mass event over: 4 nodes still report gemm.slow; draining goes on"]
    assert (rollout.state("e"), rollout.state("f")) == (ServiceState.IN_SERVICE, ServiceState.CORDONED)


def test_a_node_that_leaves_has_no_trouble(rollout: Any) -> None:
    """A planned departure ends what is said against it, also here."""
    rollout.survey("e", "NONE", leaving="scale-down")
    assert frozen(rollout) == []


def test_coming_back_goes_on(rollout: Any) -> None:
    """Nothing that is frozen keeps a node out."""
    rollout.release("a", untested=True)
    assert rollout.state("a") is ServiceState.IN_SERVICE


def test_a_person_lifts_it(rollout: Any, of: Of) -> None:
    """Then all go, and the same cause counts no more."""
    rollout.wait(1)
    rollout.lift()
    assert of("alarms", rollout.wait(1)) == ["Mass event lifted by a person: gemm.slow; draining goes on"]
    for name in "fgh":
        rollout.accuse(name, "gemm.slow")
    assert rollout.states() == "CCCCCCCCIIII"
    with pytest.raises(Refused, match="nothing is frozen"):
        rollout.lift()


def test_another_cause_freezes_again(rollout: Any) -> None:
    """What a person has let pass is one cause, not all."""
    rollout.lift()
    for name in "ghijk":
        rollout.accuse(name, "nvml.gone")
    assert frozen(rollout) == ["nvml.gone"]


def test_the_same_cause_freezes_again_after_it_has_been_over(rollout: Any) -> None:
    """A person's word holds for the event that it was about."""
    rollout.lift()
    for name in "abcde":
        rollout.absolve(name)
    for name in "fghij":
        rollout.accuse(name, "gemm.slow")
    assert frozen(rollout) == ["gemm.slow"]


@pytest.mark.parametrize("after_s", [1, 3600])
def test_it_survives_a_restart(rollout: Any, of: Of, after_s: float) -> None:
    """However long that takes, and without being said again."""
    rollout.wait(0)
    rollout.now += after_s
    said = [*rollout.restart(), *rollout.wait(1)]
    assert frozen(rollout) == ["gemm.slow"]
    rollout.accuse("f", "nvml.gone")
    assert rollout.state("f") is ServiceState.IN_SERVICE
    assert rollout.case("f").held_because
    assert of("alarms", said) == []


def test_that_it_was_lifted_survives_a_restart(rollout: Any) -> None:
    """A person need not say it twice."""
    rollout.lift()
    rollout.restart()
    rollout.accuse("f", "gemm.slow")
    rollout.wait(1)
    assert frozen(rollout) == []
    assert rollout.state("f") is ServiceState.CORDONED


def test_that_it_was_lifted_survives_a_restart_of_others_too(rollout: Any) -> None:
    """Also when only nodes are left that have got the trouble since."""
    rollout.lift()
    for name in "fghij":
        rollout.accuse(name, "gemm.slow")
    for name in "abcde":
        rollout.absolve(name)
    rollout.restart()
    assert frozen(rollout) == []


def test_a_word_about_an_event_that_is_over_does_not_come_back(rollout: Any) -> None:
    """A few nodes that still have its trouble, with some that got it slowly, do not let the next event pass."""
    rollout.lift()
    rollout.absolve("a")
    rollout.absolve("b")
    for name in "fg":
        rollout.wait(1000)
        rollout.accuse(name, "gemm.slow")
    rollout.restart()
    rollout.wait(1000)
    for name in "abhij":
        rollout.accuse(name, "gemm.slow")
    assert frozen(rollout) == ["gemm.slow"]


def test_what_was_lifted_before_it_was_over_is_not_lifted_for_good(rollout: Any) -> None:
    """A few nodes that still have the trouble of an old event do not lift a new one at a restart."""
    rollout.lift()
    for name in "abc":
        rollout.absolve(name)
    for name in "fghij":
        rollout.accuse(name, "gemm.slow")
    assert frozen(rollout) == ["gemm.slow"]
    rollout.restart()
    assert frozen(rollout) == ["gemm.slow"]


def test_it_survives_a_restart_whoever_has_the_trouble_by_then(quarantine: Any, of: Of) -> None:
    """Those that got it while it stood keep it up, however much later that was."""
    told = quarantine(6, mass_event=MassEventSettings(nodes=2, share="1%", window_s=600))
    for node in "ab":
        told.accuse(node, "gemm.slow", proof=Proof.ONCE)
    told.wait(1000)
    for node in "bc":
        told.accuse(node, "gemm.slow")
    told.absolve("a")
    assert told.reconciler.fleet_view().frozen[0].nodes == 2
    told.restart()
    assert of("acts", told.wait(1)) == []
    assert (frozen(told), told.states()) == (["gemm.slow"], "IIIIII")
    told.absolve("b")
    told.restart()
    assert frozen(told) == []


def test_earlier_findings_hide_no_mass_event(quarantine: Any) -> None:
    """A trouble is as old as it is on the node, not as what was found there first."""
    told = quarantine(8, mass_event=MassEventSettings(nodes=3, share="1%", window_s=600))
    for node in "abcd":
        told.accuse(node, "gemm.slow", proof=Proof.ONCE)
        told.wait(700)
    for node in "abcd":
        told.accuse(node, "nvml.gone")
    assert frozen(told) == ["nvml.gone"]
    assert told.states() == "CCIIIIII"
