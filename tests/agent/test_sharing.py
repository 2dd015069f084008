"""Idle probes and reservations of many plugins, each called as one."""

from dataclasses import dataclass, field

import pytest

from muster.check import Idleness, IdleProbe, Reservation
from muster_agent.sharing import Sharing

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
    sharing = Sharing([counted.probe()], [])
    assert {sharing.idleness(OWN, afresh=afresh)[0] for _ in range(3)} == {answer}
    assert counted.asked == asked


def test_a_probe_that_is_left_alone_hides_no_other():
    """The others are asked all the same."""
    sharing = Sharing([Counted(IDLE, 60.0).probe(), Counted(BUSY, 0.0).probe()], [])
    assert sharing.idleness(OWN, afresh=True) == (BUSY, "counted")
    assert sharing.idleness(OWN, afresh=False) == (BUSY, "counted")


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


def sharing_of(marks: Marks) -> Sharing:
    return Sharing([], [marks.reservation(name) for name in ("a", "b", "c")])


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
