"""Idle probes and reservations of many plugins, each called as one."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event

import pytest

from muster.check import Idleness, IdleProbe, Reservation
from muster_agent.runs import probes_and_reservations as sharing_module
from muster_agent.runs.probes_and_reservations import ANSWER_WITHIN_S, ProbesAndReservations

IDLE, BUSY = Idleness.IDLE, Idleness.BUSY
OWN = frozenset({1})


@dataclass
class Counted:
    """A probe that says what it is told to and counts how often it was asked."""

    answer: Idleness
    interval_s: float
    asked: int = 0

    def ask(self, _own: frozenset[int]) -> Idleness:
        self.asked += 1
        return self.answer

    def probe(self) -> IdleProbe:
        return IdleProbe(name="counted", probe=self.ask, interval_s=self.interval_s)


@pytest.mark.parametrize(
    ("answer", "interval_s", "afresh", "asked"),
    [(IDLE, 0.0, False, 3), (IDLE, 60.0, False, 1), (IDLE, 60.0, True, 3), (BUSY, 60.0, False, 3)],
)
def test_a_probe_is_left_alone_for_its_interval_after_it_has_said_idle(answer, interval_s, afresh, asked):
    """Not before a run gets the node, and not after any other answer."""
    counted = Counted(answer, interval_s)
    sharing = ProbesAndReservations([counted.probe()], [])
    assert {sharing.idleness(OWN, afresh=afresh)[0] for _ in range(3)} == {answer}
    assert counted.asked == asked


def test_a_probe_that_is_left_alone_hides_no_other():
    """The others are asked all the same."""
    sharing = ProbesAndReservations([Counted(IDLE, 60.0).probe(), Counted(BUSY, 0.0).probe()], [])
    assert sharing.idleness(OWN, afresh=True) == (BUSY, "counted")
    assert sharing.idleness(OWN, afresh=False) == (BUSY, "counted")


@dataclass
class Waiting:
    """A probe that waits for somebody far away, and then says that nobody is here."""

    answered: Event = field(default_factory=Event)
    asked: int = 0

    def ask(self, _own: frozenset[int]) -> Idleness:
        self.asked += 1
        self.answered.wait(60)
        return IDLE

    def probe(self) -> IdleProbe:
        return IdleProbe(name="far", probe=self.ask)


@pytest.fixture
def far() -> Iterator[Waiting]:
    """One that gets its answer at the end of the test."""
    waiting = Waiting()
    yield waiting
    waiting.answered.set()


def test_a_probe_that_waits_keeps_no_other_from_telling(far):
    """Work is told as soon as one has seen it, wherever that one stands."""
    for probes in ([far.probe(), Counted(BUSY, 0.0).probe()], [Counted(BUSY, 0.0).probe(), far.probe()]):
        began = time.monotonic()
        assert ProbesAndReservations(probes, []).idleness(OWN, afresh=True) == (BUSY, "counted")
        assert time.monotonic() - began < ANSWER_WITHIN_S


def test_a_probe_that_does_not_answer_is_named(far, monkeypatch):
    """Whatever the others say, and every time; it is not asked again before it has answered."""
    monkeypatch.setattr(sharing_module, "ANSWER_WITHIN_S", 0.05)
    unknown = Counted(Idleness.UNKNOWN, 0.0)
    sharing = ProbesAndReservations([far.probe(), Counted(IDLE, 0.0).probe(), unknown.probe()], [])
    for _ in range(3):
        assert sharing.idleness(OWN, afresh=True) == (Idleness.UNKNOWN, "counted; far: no answer within 0.05 s")
    assert (far.asked, unknown.asked) == (1, 3)


def test_an_answer_that_comes_late_answers_nothing(far, monkeypatch):
    """The question that comes after it is asked again."""
    monkeypatch.setattr(sharing_module, "ANSWER_WITHIN_S", 0.05)
    sharing = ProbesAndReservations([far.probe()], [])
    assert sharing.idleness(OWN, afresh=True)[0] is Idleness.UNKNOWN
    monkeypatch.setattr(sharing_module, "ANSWER_WITHIN_S", 30.0)
    far.answered.set()
    assert sharing.idleness(OWN, afresh=True) == (IDLE, "")
    assert far.asked == 2


@dataclass
class Marks:
    """Reservations by name; those of which the name is in `broken` raise, when made and when released."""

    broken: tuple[str, ...] = ()
    made: dict[str, str] = field(default_factory=dict)

    def reservation(self, name: str) -> Reservation:
        def reserve(reason: str) -> None:
            self._break(name)
            self.made[name] = reason

        def release() -> None:
            self._break(name)
            self.made.pop(name, None)

        return Reservation(name=name, reserve=reserve, release=release)

    def _break(self, name: str) -> None:
        if name in self.broken:
            raise RuntimeError("held by\nsomebody else")


def sharing_of(marks: Marks) -> ProbesAndReservations:
    return ProbesAndReservations([], [marks.reservation(name) for name in ("a", "b", "c")])


def test_all_reservations_are_made_and_given_back():
    """With the reason that they were given."""
    marks = Marks()
    sharing = sharing_of(marks)
    assert sharing.reserve("a sweep") is None
    assert marks.made == dict.fromkeys("abc", "a sweep")
    assert sharing.give_back() is None
    assert marks.made == {}


def test_the_first_reservation_that_cannot_be_made_says_why():
    """In one line, and those behind it are not tried."""
    marks = Marks(broken=("b",))
    assert sharing_of(marks).reserve("a sweep") == "b: held by somebody else"
    assert marks.made == {"a": "a sweep"}


def test_all_are_given_back_that_can_be():
    """The others are named."""
    marks = Marks(broken=("a", "b"), made={"c": "a sweep"})
    assert sharing_of(marks).give_back() == "a: held by somebody else; b: held by somebody else"
    assert marks.made == {}
