"""What holds for every policy, whatever stands against a node."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.lots import examples

from muster.model import Action, Finding, Run, Severity, Verdict
from muster_coordinator.evidence.health import Evidence
from muster_coordinator.evidence.standing_findings import standing_findings_of
from muster_coordinator.model.findings import Proof, StandingFinding
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows

CHECKS = ("gemm", "nvml")
CODES = ("gemm.slow", "gemm.corrupt", "nvml.xid", "nvml.too_hot")
TIMES = st.integers(0, 1000).map(float)
STANDING = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN)
OF_THE_NODE = (Proof.TWICE, Proof.ONCE)

charges = st.builds(
    StandingFinding,
    check=st.sampled_from(CHECKS),
    code=st.sampled_from(CODES),
    device=st.sampled_from([None, 0, 1]),
    severity=st.sampled_from(STANDING),
    action=st.sampled_from(Action),
    summary=st.just("found"),
    since=TIMES,
    seen=TIMES,
    run=st.just("r"),
    proof=st.sampled_from([*OF_THE_NODE, *Proof]),
    evidence=st.sampled_from([{}, {"xid": 79}, {"xid": 31}]),
)


@st.composite
def rows(draw):
    said = {
        "name": draw(st.sampled_from(["one", "two", "three"])),
        "codes": draw(st.sampled_from([("*",), ("gemm.*",), ("*.xid",)])),
        "checks": draw(st.sampled_from([("*",), ("*",), ("nvml",)])),
        "when": draw(st.sampled_from([{}, {}, {"xid": 79}])),
        "severity": draw(st.sampled_from(["WARNING", "ERROR"])),
        "proof": draw(st.sampled_from([*OF_THE_NODE, *Proof])),
        "reason": "so it is",
    }
    if draw(st.integers(0, 3)) == 0:
        return Row(**said, service="IN_SERVICE")
    if draw(st.integers(0, 3)) == 0:
        said |= {"repeats": draw(st.integers(2, 4)), "within_s": draw(st.integers(1, 500))}
    after_s, fresh_s = draw(st.sampled_from([0, 0, 0, 300])), draw(st.integers(1, 2000))
    return Row(**said, after_s=after_s, fresh_s=fresh_s, urgency=draw(st.integers(0, 100)))


policies = st.lists(rows(), min_size=1, max_size=5).map(lambda drawn: Policy(tuple(drawn)))
against_a_node = st.lists(charges, min_size=1, max_size=6)
sightings = st.dictionaries(
    charges.map(lambda charge: charge.key), st.lists(TIMES, max_size=6).map(lambda times: tuple(sorted(times)))
)
NOW = st.integers(300, 1000).map(float)

PROVES = Row(name="proves", codes=("sure.thing",), fresh_s=2000, urgency=30, reason="it is sure")
PROVEN = StandingFinding(
    check="sure",
    code="sure.thing",
    device=None,
    severity=Severity.ERROR,
    action=Action.NONE,
    summary="found",
    since=0.0,
    seen=0.0,
    run="r",
    proof=Proof.TWICE,
)


@settings(max_examples=examples(30))
@given(policies, st.lists(charges.filter(lambda charge: charge.severity is Severity.UNKNOWN)), sightings, NOW)
def test_what_could_not_be_found_out_takes_nobody_out(policy, found, seen_at, now):
    """No row matches what is UNKNOWN."""
    assert policy.evaluate(found, seen_at, now).requirement is None
    assert policy.evaluate(found, seen_at, now).next_change is None


@settings(max_examples=examples(30))
@given(policies, against_a_node, charges, sightings, NOW)
def test_more_evidence_never_takes_a_proof_away(policy, found, more, seen_at, now):
    """A demand that is proven stays so with another finding, and becomes no less urgent."""
    policy, found = Policy((PROVES, *policy.rows)), [PROVEN, *found]
    before, after = (
        policy.evaluate(found, seen_at, now).requirement,
        policy.evaluate([*found, more], seen_at, now).requirement,
    )
    assert before.is_proven
    assert after.is_proven
    assert after.urgency >= before.urgency
    assert set(before.codes) <= set(after.codes) <= {charge.code for charge in [*found, more]}


@settings(max_examples=examples(30))
@given(
    policies, against_a_node.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))), sightings, NOW
)
def test_the_order_of_findings_does_not_matter(policy, orders, seen_at, now):
    """The same findings ask for the same in whatever order they were found."""
    one, other = orders
    assert policy.evaluate(one, seen_at, now).requirement == policy.evaluate(other, seen_at, now).requirement
    assert policy.evaluate(one, seen_at, now).next_change == policy.evaluate(other, seen_at, now).next_change


@settings(max_examples=examples(30))
@given(policies, against_a_node, sightings, NOW, st.floats(0, 1, exclude_max=True))
def test_nothing_changes_before_the_next_look(policy, found, seen_at, now, share):
    """Whoever looks when the policy says so misses nothing; a look that is announced lies ahead."""
    look = policy.evaluate(found, seen_at, now).next_change
    assert look is None or look > now
    until = now + share * ((1e6 if look is None else look) - now)
    assume(look is None or until < look)
    assert policy.evaluate(found, seen_at, until).requirement == policy.evaluate(found, seen_at, now).requirement


@settings(max_examples=examples(30))
@given(st.sampled_from([13, 31, 43, 45]), st.sampled_from(STANDING), st.sampled_from(["nvml", "kernel_log"]), TIMES)
def test_xids_of_applications_take_nobody_out(number, severity, check, now):
    """With what comes with muster, whatever they were made to weigh."""
    found = StandingFinding(
        check=check,
        code=f"{check}.xid",
        device=0,
        severity=severity,
        action=Action.CHECK_APPLICATION,
        summary=f"XID {number}",
        since=0.0,
        seen=now,
        run="r",
        proof=Proof.TWICE,
        evidence={"xid": number},
    )
    assert Policy(shipped_rows()).evaluate([found], {}, now).requirement is None


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.sampled_from(Verdict), st.sampled_from(STANDING), st.sampled_from(CODES)), max_size=5))
def test_what_groups_find_takes_nobody_out(found):
    """Runs in a group leave no charge behind, so that not even a policy of everything can act on them."""
    evidence = Evidence()
    for number, (verdict, severity, code) in enumerate(found):
        finding = Finding(code=code, summary="found", severity=severity, action=Action.REPLACE)
        evidence.add(
            Run(
                id=f"r{number}",
                node="n1",
                check="gemm",
                verdict=verdict,
                findings=(finding,),
                started_at=float(number),
                duration_s=1.0,
                group="g1",
            )
        )
    everything = Row(name="everything", codes=("*",), severity="WARNING", proof=Proof.ONCE, reason="all of it")
    assert Policy((everything,)).evaluate(standing_findings_of(evidence), {}, 10.0).requirement is None
