"""Which nodes are convicted by several sweeps together, and what a sweep leaves for the next one."""

from collections.abc import Iterable

from tests.coordinator.localize.past_sweeps import bad, before, known
from tests.coordinator.localize.runs import fleet, ran

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.prior import NO_PRIOR, SweepPrior
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.wording.report import report_of
from muster_coordinator.model.probes import CheckAbilities, GroupRun

SITES = fleet(64, leaf_of=8, places_itself=False)
PASSED = [ran(f"n{number}", f"n{number + 32}") for number in range(1, 32)]
BAD_NOW = [ran("n0", "n32", at=0.5), ran("n0", "n9"), ran("n32", "n41")]
BEFORE = (before(1, bad("n0", "n8", "n16")), before(2, bad("n0", "n24", "n40")))


def diagnosed(runs: Iterable[GroupRun], prior: SweepPrior = NO_PRIOR) -> Diagnosis:
    return Diagnosis(GroupEvidence(SITES, tuple(runs)), CheckAbilities(), prior)


def named(diagnosis: Diagnosis) -> dict[str, Part]:
    return {culprit.of[0]: culprit.part for culprit in diagnosis.culprits}


def test_a_node_that_is_bad_again_and_again_is_convicted() -> None:
    """Neither this sweep nor the earlier ones are enough alone; its partner of today is not convicted."""
    assert named(diagnosed([*PASSED, *BAD_NOW])) == {}
    for today in ([ran("n0", "n32")], []):
        assert named(diagnosed([*PASSED, *today], known(*BEFORE, *BEFORE))) == {}
    diagnosis = diagnosed([*PASSED, *BAD_NOW], known(*BEFORE))
    assert named(diagnosis) == {"n0": Part.NODE}
    assert diagnosis.convicted == {"n0"}
    assert [suspicion.node for suspicion in diagnosis.recurring.suspicions if suspicion.bad] == []


def test_the_reasons_name_the_earlier_sweeps() -> None:
    """With their days and partners, and the run of this sweep; more runs make more confidence."""
    (failed,) = report_of(diagnosed([*PASSED, *BAD_NOW], known(*BEFORE)), "collective", "busbw_gbps").failed_nodes
    track, intermittent, today = failed.reasons
    assert track == (
        "suspected since sweep s2 of 1970-04-09; since then 5 of 8 runs were bad for no other known reason,"
        " in earlier sweeps with n8, with n16, with n24, with n40"
    )
    assert intermittent == "it is intermittent: other runs were good"
    assert today.startswith("busbw 0.5 GB/s with n32 (which passed)")
    assert failed.confidence == round(1 - 0.5**5, 3)


def test_a_suspicion_that_stays_open_is_told() -> None:
    """In the observations, with the sweep in which it began."""
    report = report_of(diagnosed([*PASSED, ran("n0", "n32")], known(before(1, bad("n0", "n8")))), "collective", None)
    assert [said for said in report.observations if "suspected" in said] == [
        "n0 is still suspected: suspected since sweep s1 of 1970-04-10; since then 1 of 3 runs were bad for no other"
        " known reason, in earlier sweeps with n8"
    ]


def test_too_few_bad_runs_of_too_few_partners_convict_nobody() -> None:
    """Three may lie in a fleet of 64: the same two partners in both sweeps may be liars."""
    few = known(before(1, bad("n0", "n8")), before(2, bad("n0", "n8", "n16")))
    assert named(diagnosed([*PASSED, *BAD_NOW], few)) == {}


def test_nobody_is_convicted_while_most_nodes_of_a_leaf_recur() -> None:
    """Their switch may be bad now and then, and a node may be labelled as if it stood elsewhere."""
    leaf = [bad(f"n{number}", f"n{number + 8}", f"n{number + 16}") for number in range(56, 60)]
    assert named(diagnosed([*PASSED, *BAD_NOW], known(before(1, *leaf), *BEFORE))) == {}


def test_a_sweep_leaves_its_unexplained_bad_runs_behind() -> None:
    """For both members of a bad pair; and the good runs of a node that an earlier sweep suspected."""
    diagnosis = diagnosed([*PASSED, *BAD_NOW], known(before(1, bad("n5", "n8"))))
    left = {suspicion.node: suspicion for suspicion in diagnosis.recurring.suspicions}
    assert left.keys() == {"n0", "n32", "n5"}
    assert (left["n0"].bad, left["n0"].good, left["n32"].bad) == ((("n32",),), 1, (("n0",),))
    assert (left["n5"].bad, left["n5"].good) == ((), 1)


def test_while_a_leaf_is_suspected_no_node_is() -> None:
    """What fails like its nodes may stand there, whatever its label says."""
    behind = [ran(f"n{number}", f"n{number + 8}", at=0.5) for number in range(48, 56)]
    diagnosis = diagnosed([*PASSED[:16], *behind])
    assert diagnosis.leaves.suspected
    assert diagnosis.recurring.suspicions == ()
