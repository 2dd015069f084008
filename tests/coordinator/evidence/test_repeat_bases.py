"""A run that travels as a repeat is stored, shown and judged as if it had travelled whole."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import cases
from tests.coordinator.fleets import fleet, head
from tests.coordinator.fleets import run as any_run

from muster.errors import RemoteError
from muster.model import Finding, Run, Severity, Verdict
from muster.wire import codec
from muster.wire.deflate import deflated
from muster.wire.messages import Repeat, Report
from muster.wire.scheduled_runs import scheduled_id, stream_key
from muster_agent.decide.repeated_runs import RepeatedRuns
from muster_coordinator.evidence import repeat_bases
from muster_coordinator.evidence.repeat_bases import MOST_BYTES_OF_A_NODE, RepeatBases
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import Announce, FleetCommand, ReportSeen, SendAck, StoreRuns
from muster_coordinator.model.run_shape import shape_of

STREAM = "s"


def due(seq: int, verdict=Verdict.PASS, **values) -> Run:
    """A scheduled run under the id that its agent gives it."""
    usual = {
        "cause": "schedule",
        "id": scheduled_id(stream_key("a", STREAM), seq),
        "metrics": {"tflops": [float(seq), None], "free": seq / 8},
        "facts": {"name": "x", "free": seq / 8, "devices": [0, 1]},
    }
    return any_run(seq, verdict).model_copy(update={**usual, **values})


class Agent:
    """Sends runs as an agent does, to one fleet after the other."""

    def __init__(self, made: Fleet) -> None:
        self.fleet = made
        self.repeated = RepeatedRuns()
        self.repeats = 0

    def send(self, *runs: Run, at: float | None = None) -> list[FleetCommand]:
        """One report with these runs. Its acknowledgement comes back at once."""
        at = float(runs[-1].seq) if at is None else at
        split = self.repeated.split([(run.seq, run.model_dump_json()) for run in runs], at, at)
        self.repeats += len(split.repeats)
        payload = codec.encode_report(
            sent_at=at,
            node="a",
            stream=STREAM,
            after=runs[0].seq - 1,
            through=runs[-1].seq,
            urgent=False,
            runs=split.whole,
            repeats=split.repeats,
        )
        message = codec.decode(deflated(payload), codec.REPORT)
        commands = self.fleet.handle(ReportSeen(message, len(payload)), at)
        ack = ack_of(commands)
        self.repeated.stored(ack.ack.stored_through)
        if ack.ack.gap:
            self.repeated.refused(at)
        return commands


def ack_of(commands: list[FleetCommand]) -> SendAck:
    (ack,) = [command for command in commands if isinstance(command, SendAck)]
    return ack


def announced(commands: list[FleetCommand]) -> list[Run]:
    return [each.payload for each in commands if isinstance(each, Announce) and isinstance(each.payload, Run)]


def stored(commands: list[FleetCommand]) -> list[str]:
    """W for each run that is stored whole, q for each quiet one, with its number."""
    found = [each for each in commands if isinstance(each, StoreRuns)]
    return [f"W{run.seq}" for each in found for run in each.runs] + [
        f"q{quiet.run.seq}" for each in found for quiet in each.quiet
    ]


numbers = st.none() | st.floats(-1e29, 1e29)
keys = st.text(max_size=5)
facts = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 62), 1 << 62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
codes = st.from_regex(r"\A[a-z_.]{1,8}\Z")


@given(
    metrics=st.dictionaries(codes, numbers | st.lists(numbers, max_size=4), max_size=6),
    facts=st.dictionaries(keys, facts, max_size=4),
    times=st.tuples(st.floats(1, 2e9), st.floats(1, 2e9)),
    duration_s=st.floats(0, 1e6),
    seed=st.integers(0, 1 << 30),
)
def test_a_repeat_becomes_the_run_that_it_was(metrics, facts, times, duration_s, seed) -> None:
    """Number by number, in metrics and facts, to the millisecond; all that is lost are parts of a microsecond."""
    chance = random.Random(seed)
    agent = Agent(fleet("a"))
    first = due(1, metrics=metrics, facts=facts, started_at=times[0])
    second = due(2, metrics=moved(metrics, chance), facts=moved(facts, chance), started_at=times[1])
    second = second.model_copy(update={"duration_s": duration_s})
    agent.send(first, at=2e9)
    as_sent = Run.model_validate_json(second.model_dump_json())
    (seen,) = announced(agent.send(second, at=2e9))
    assert agent.repeats == 1 or "fingerprints" in facts
    assert seen == as_sent.model_copy(update={"duration_s": round(duration_s, 6)})
    assert repr(seen.facts) == repr(as_sent.facts) or "-0.0" in repr((facts, as_sent.facts))


def moved(value: Any, chance: random.Random) -> Any:
    """The same with other numbers of the same kind."""
    if isinstance(value, dict):
        return {name: moved(each, chance) for name, each in value.items()}
    if isinstance(value, list):
        return [moved(each, chance) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or chance.random() < 0.3:
        return value
    return chance.randrange(-5, 1 << 60) if isinstance(value, int) else chance.choice((0.0, 3.0, 1e17, chance.random()))


def test_the_coordinator_decides_as_if_all_had_travelled_whole() -> None:
    """The same runs are quiet, the same standings follow, and everybody sees the same runs."""
    chance = random.Random(5)
    verdicts = chance.choices((Verdict.PASS, Verdict.SKIPPED, Verdict.FAIL), (8, 2, 1), k=200)
    runs = [due(seq, verdict) for seq, verdict in enumerate(verdicts, 1)]
    repeating, plain = Agent(fleet("a")), fleet("a")
    for run in runs:
        message = Report(**{**head("a"), "sent_at": float(run.seq)}, stream=STREAM, after=run.seq - 1, runs=(run,))
        expected = plain.handle(ReportSeen(message, 500), float(run.seq))
        got = repeating.send(run)
        assert stored(got) == stored(expected)
        assert announced(got) == announced(expected)
    assert repeating.repeats > 100
    assert (view := repeating.fleet.node("a", 300.0)) is not None
    assert view == plain.node("a", 300.0)


def test_a_coordinator_without_the_base_takes_what_comes_before() -> None:
    """It acknowledges that, says that there is a gap, and gets the next run whole; everything is stored once."""
    agent = Agent(fleet("a"))
    agent.send(due(1), due(2))
    agent.send(due(3))
    assert agent.repeats == 2
    agent.fleet = fleet("a")  # another process, which has forgotten all
    agent.fleet._reports.streams.restore({("a", STREAM): 3})
    failed = due(4, Verdict.FAIL)
    got = agent.send(failed, due(5), due(6))
    assert (stored(got), ack_of(got).ack.stored_through, ack_of(got).ack.gap) == (["W4"], 4, True)
    got = agent.send(due(5), due(6))
    assert (stored(got), ack_of(got).ack.gap) == (["W5", "W6"], False)
    assert agent.repeats == 5
    assert stored(agent.send(due(7), due(8))) == ["q7", "q8"]


def test_a_run_whose_base_goes_before_it_in_its_report_is_taken() -> None:
    """What has waited for hours comes as one whole run and numbers."""
    agent = Agent(fleet("a"))
    assert stored(agent.send(due(1), due(2), due(3), due(4))) == ["W1", "q2", "q3", "q4"]
    assert agent.repeats == 3


def test_if_the_first_run_lacks_its_base_nothing_is_taken() -> None:
    """The stream stays where it was."""
    agent = Agent(fleet("a"))
    agent.send(due(1))
    agent.fleet = fleet("a")
    agent.fleet._reports.streams.restore({("a", STREAM): 1})
    got = agent.send(due(2))
    assert (stored(got), ack_of(got).ack.stored_through, ack_of(got).ack.gap) == ([], 1, True)


def repeat(**fields) -> Repeat:
    return Repeat(**{"seq": 2, "like": 1, "age_ms": 0, "duration_s": 0.1, "metrics": [1.0, None, 0.5], **fields})


def kept(*runs: Run) -> RepeatBases:
    bases = RepeatBases()
    for run in runs:
        bases.keep(run, shape_of(run), STREAM)
    return bases


@cases(
    "wrong",
    [
        {"like": 7},
        {"like": 2},
        {"metrics": []},
        {"metrics": [1.0, None]},
        {"metrics": [1.0, None, 0.5, 0.5]},
        {"facts": ()},
        {"facts": (0.5, 0)},
        {"facts": (0.5, 0, 1, 2)},
        {"facts": (1, 0, 1)},
        {"facts": (0.5, 0.5, 1)},
        {"age_ms": 1 << 52},
        {"age_ms": -(1 << 52)},
    ],
)
def test_a_repeat_that_does_not_fit_is_none(wrong) -> None:
    """Numbers that are too many, too few or of another kind, an unknown base, or a time that nobody can write."""
    assert kept(due(1)).expand("a", STREAM, repeat(), 1000.0) is not None
    assert kept(due(1)).expand("a", STREAM, repeat(**wrong), 1000.0) is None


def test_a_base_is_that_of_a_node_and_a_stream() -> None:
    """Another node, or the same with a new outbox, cannot name it."""
    bases = kept(due(1))
    assert bases.expand("b", STREAM, repeat(), 1000.0) is None
    assert bases.expand("a", "t", repeat(), 1000.0) is None
    bases.forget("a")
    assert bases.expand("a", STREAM, repeat(), 1000.0) is None


@cases(
    "wrong",
    [
        {"metrics": [float("nan")]},
        {"metrics": [float("inf")]},
        {"metrics": [1e31]},
        {"metrics": ["1.5x"]},
        {"facts": [float("nan")]},
        {"facts": [1 << 70]},
        {"facts": ["text"]},
        {"seq": -1},
        {"seq": 1 << 60},
        {"duration_s": -1},
        {"age_ms": 1 << 60},
        {"age_ms": 0.5},
    ],
)
def test_a_repeat_that_no_agent_sends_is_refused(wrong) -> None:
    """At the edge, with its report."""
    fields = {"seq": 2, "like": 1, "age_ms": 0, "duration_s": 0.1, "metrics": [], **wrong}
    payload = codec.encode_report(
        sent_at=1.0, node="a", stream=STREAM, after=0, through=2, urgent=False, runs=[], repeats=[fields]
    ).replace(b'"Infinity"', b"Infinity")
    with pytest.raises(RemoteError):
        codec.decode(payload, codec.REPORT)


def test_a_large_run_is_no_base() -> None:
    """A small repeat cannot stand for much."""
    large = due(1, facts={"text": "x" * repeat_bases.MOST_BYTES_OF_A_BASE})
    assert kept(large).expand("a", STREAM, repeat(), 1000.0) is None
    noted = due(1, findings=(Finding(code="a.b", summary="x" * 4000, severity=Severity.INFO),) * 5)
    assert kept(noted).expand("a", STREAM, repeat(), 1000.0) is None


def test_the_bases_of_a_node_are_bounded() -> None:
    """In number for each check and in all, and in bytes; the oldest go."""
    same = kept(*(due(seq) for seq in range(1, 7)))
    assert [seq for seq in range(1, 7) if same.expand("a", STREAM, repeat(seq=9, like=seq), 1000.0)] == [3, 4, 5, 6]
    many = kept(*(due(seq, check=f"c{seq}") for seq in range(1, 1000)))
    assert len(many._nodes["a"].by_seq) == repeat_bases.MOST_BASES_OF_A_NODE
    big = kept(*(due(seq, check=f"c{seq}", facts={"text": f"{seq}" + "x" * 10_000}) for seq in range(1, 100)))
    assert big._nodes["a"].size <= MOST_BYTES_OF_A_NODE
    assert sum(base.size for base in big._nodes["a"].by_seq.values()) == big._nodes["a"].size
    assert len(big._nodes["a"].by_seq) > 20


def test_nodes_share_what_is_equal_and_nothing_stays_behind() -> None:
    """Thousands of nodes have the same names, parameters and often facts."""
    bases = RepeatBases()
    for node in ("a", "b", "c"):
        run = due(1, node=node, facts={"name": "x"})
        bases.keep(run, shape_of(run), STREAM)
    assert (len(bases._outlines), len(bases._facts)) == (1, 1)
    for node in ("a", "b", "c"):
        bases.forget(node)
    assert (len(bases._outlines), len(bases._facts)) == (0, 0)


def test_a_repeat_costs_what_its_base_brings() -> None:
    """Many repeats of a large run are not taken at once."""
    agent = Agent(fleet("a"))
    filler = {"text": "x" * 11_000}
    agent.send(due(1, facts=filler))
    got = agent.send(*(due(seq, facts=filler) for seq in range(2, 102)))
    assert agent.repeats == 100
    assert 20 < ack_of(got).ack.stored_through < 60
    assert not ack_of(got).ack.gap
