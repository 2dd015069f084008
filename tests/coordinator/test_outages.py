"""Who is lost and who is not when a connection ends: an agent's, the broker's or the coordinator's."""

from dataclasses import dataclass, field

import pytest
from tests.cases import cases
from tests.coordinator.fleets import CHECKS, fleet, kinds, sweep, views

from muster.model import Inventory
from muster.wire.codec import PRESENCE, decode, encode
from muster.wire.messages import InventoryReport, Presence
from muster_coordinator.evidence.heartbeats import WILL_BELIEVED_AFTER_S
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    AppendStory,
    FleetCommand,
    FleetEvent,
    InventorySeen,
    LinkCaughtUp,
    LinkLost,
    LinkRestored,
    PresenceSeen,
    SaveNode,
    Ticked,
)
from muster_coordinator.model.load import CoordinatorLoad, LoadSeen
from muster_coordinator.model.stored_fleet import StoredFleet

BACK: tuple[FleetEvent, ...] = (LinkRestored(), LinkCaughtUp())


def heartbeat(node: str = "a", *, kept: bool = False, process: str = "") -> PresenceSeen:
    return PresenceSeen(Presence(id="beat", sent_at=1.0, node=node, online=True, process=process), kept=kept)


def will(node: str = "a", *, kept: bool = False) -> PresenceSeen:
    return PresenceSeen(Presence(id="will", sent_at=1.0, node=node, online=False), kept=kept)


def goodbye(node: str = "a", *, kept: bool = False) -> PresenceSeen:
    return PresenceSeen(Presence(id="bye", sent_at=1.0, node=node, online=False, goodbye=True), kept=kept)


@dataclass
class Watched:
    """A fleet that ticks every `tick_s` seconds, and when each of its nodes was lost."""

    fleet: Fleet = field(default_factory=lambda: fleet("a", "b"))
    now: float = 0.0
    tick_s: float = 0.25
    lost_at: dict[str, float] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    saved: dict[str, SaveNode] = field(default_factory=dict)

    def play(self, until: float, *script: tuple[float, FleetEvent]) -> None:
        """Feeds each event at its time, and heartbeats to nobody."""
        waiting = sorted(script, key=lambda step: step[0])
        while self.now < until:
            self.now += self.tick_s
            while waiting and waiting[0][0] <= self.now:
                self.note(self.fleet.handle(waiting.pop(0)[1], self.now))
            self.note(self.fleet.handle(Ticked(), self.now))

    def note(self, commands: list[FleetCommand]) -> None:
        for command in commands:
            if isinstance(command, SaveNode):
                self.saved[command.record.name] = command
            if isinstance(command, AppendStory) and command.entry.kind in ("lost", "back", "policy"):
                self.told.append(f"{command.entry.kind} {command.entry.node}")
                if command.entry.kind == "lost":
                    self.lost_at[command.entry.node] = self.now

    def restarted(self) -> "Watched":
        """The next coordinator over what this one has stored, not connected yet."""
        again = Watched(Fleet(name="test", epoch=8), self.now, self.tick_s)
        stored = StoredFleet(nodes=tuple(saved.record for saved in self.saved.values()))
        again.note(again.fleet.restore(stored, self.now))
        return again


def beats(node: str, start: float, end: float) -> list[tuple[float, FleetEvent]]:
    return [(start + 10.0 * step, heartbeat(node)) for step in range(int((end - start) / 10.0) + 1)]


LIVE: dict[str, tuple[list[tuple[float, FleetEvent]], float | None]] = {
    "a goodbye is believed at once": ([(5.0, goodbye())], 5.0),
    "a will after some seconds": ([(5.0, will())], 5.0 + WILL_BELIEVED_AFTER_S),
    "repeated wills do not put it off": ([(5.0, will()), (7.0, will()), (9.0, will())], 10.0),
    "not if the node is heard meanwhile": ([(5.0, will()), (9.5, heartbeat()), *beats("a", 10.0, 100.0)], None),
    "a later will counts again": ([(5.0, will()), (9.5, heartbeat()), (15.0, will())], 20.0),
    "a goodbye after a will": ([(5.0, will()), (6.0, goodbye())], 6.0),
    "a will that the broker had kept says nothing": ([(5.0, will(kept=True))], 30.25),
    "nor does a goodbye": ([(5.0, goodbye(kept=True))], 30.25),
    "silence": ([], 30.25),
    "a heartbeat that was kept is not from now": ([(20.0, heartbeat(kept=True))], 30.25),
}


@cases(("script", "lost_at"), LIVE.values(), ids=LIVE)
def test_when_a_node_is_lost_while_the_link_stays(script, lost_at) -> None:
    """Goodbyes are believed at once, wills after some seconds, and silence after three heartbeats."""
    watched = Watched()
    watched.play(100.0, *script, *beats("b", 0.0, 100.0))
    assert watched.lost_at == ({} if lost_at is None else {"a": lost_at})
    assert [view.name for view in views(watched.fleet, watched.now) if view.lost] == [*watched.lost_at]


OUTAGES: dict[str, list[tuple[float, FleetEvent]]] = {
    "wills, then the loss of the link": [(10.0, will("a")), (10.1, will("b")), (10.5, LinkLost())],
    "wills, then the loss just in time": [(10.0, will("a")), (10.0, will("b")), (14.9, LinkLost())],
    "only the loss": [(10.0, LinkLost())],
    "a loss without end": [(10.0, LinkLost()), (1_000.0, LinkLost())],
}


@cases("script", OUTAGES.values(), ids=OUTAGES)
@pytest.mark.parametrize("away_s", [0.5, 29.0, 3600.0])
def test_an_outage_makes_nobody_lost(script, away_s: float) -> None:
    """Nothing is told about any node, however long it takes, if all are heard within a minute of its end."""
    watched = Watched(tick_s=0.25 if away_s < 60 else 5.0)
    back = 15.0 + away_s
    kept: list[tuple[float, FleetEvent]] = [
        (back + 0.1, event) for event in (will("a", kept=True), heartbeat("b", kept=True))
    ]
    again = [*beats("a", back + 58.0, back + 300.0), *beats("b", back + 3.0, back + 300.0)]
    steps = [step for step in script if step[0] < back]
    watched.play(back + 300.0, *steps, *((back, event) for event in BACK), *kept, *again)
    assert watched.told == []


def test_who_does_not_come_back_after_an_outage_is_lost_once() -> None:
    """It has a minute to reconnect and three heartbeats, counted from when the coordinator hears again."""
    watched = Watched()
    back: list[tuple[float, FleetEvent]] = [(100.0, LinkRestored()), (130.0, LinkCaughtUp())]
    watched.play(400.0, (10.0, will()), (10.5, LinkLost()), *back, *beats("b", 140.0, 400.0))
    assert watched.lost_at == {"a": 220.25}
    assert watched.told == ["lost a", "policy a"]


def test_a_will_after_an_outage_counts_only_from_who_was_heard_since() -> None:
    """A late will may be about the connection before the outage, and its node on its way back."""
    watched = Watched()
    back: list[tuple[float, FleetEvent]] = [(10.0, LinkLost()), (20.0, BACK[0]), (20.0, BACK[1])]
    watched.play(70.0, *back, (21.0, will("a")), (22.0, heartbeat("b", kept=True)), (23.0, will("b")))
    assert watched.lost_at == {}
    watched.play(100.0, (71.0, heartbeat("a")), (72.0, heartbeat("b")), (80.0, will("b")))
    assert watched.lost_at == {"b": 85.0}


def test_between_the_connection_and_the_end_of_the_kept_messages_nobody_is_lost() -> None:
    """The coordinator may need minutes for what the broker has kept of ten thousand nodes."""
    watched = Watched()
    watched.play(900.0, (10.0, LinkLost()), (20.0, LinkRestored()), (30.0, will()))
    assert watched.lost_at == {}


@cases("back", [(LinkRestored(),), ()], ids=["after an outage", "after a start"])
def test_a_will_before_the_end_of_the_kept_messages_counts_from_who_was_heard(back) -> None:
    """The node has answered on the connection that has ended. A sweep in which it takes part blames no other."""
    watched = Watched()
    watched.play(20.0)
    watched = watched.restarted() if not back else watched
    watched.play(40.0, *((20.0, event) for event in back), (21.0, heartbeat("a")), (22.0, will("a")), (22.0, will("b")))
    assert watched.lost_at == {"a": 22.0 + WILL_BELIEVED_AFTER_S}


@pytest.mark.parametrize("missing_s", [6.0, 29.0, 3600.0])
def test_a_coordinator_that_stood_still_loses_only_who_stays_silent(missing_s: float) -> None:
    """Its host was suspended, or its clock was set forward: it looks before it reads what has come meanwhile."""
    watched = Watched()
    watched.play(20.0, (15.0, heartbeat("a")), (15.0, heartbeat("b")), (19.0, will("b")))
    watched.now += missing_s
    watched.play(watched.now + 20.0, *beats("a", watched.now + 5.0, watched.now + 200.0))
    assert watched.lost_at == {}
    back = watched.now - 20.0
    watched.play(back + 100.0, *beats("a", back + 20.0, back + 200.0))
    assert watched.lost_at == {"b": pytest.approx(back + 30.5, abs=0.5)}


@pytest.mark.parametrize("connected_after_s", [1.0, 3600.0])
def test_a_start_makes_nobody_lost(connected_after_s: float) -> None:
    """Neither while there is no broker, nor by a will that it has kept; who stays silent is lost in the end."""
    before = Watched(tick_s=0.25 if connected_after_s < 60 else 4.0)
    for node in ("a", "b"):
        report = InventoryReport(id=node, sent_at=1.0, node=node, inventory=Inventory(), checks=CHECKS[:1])
        before.note(before.fleet.handle(InventorySeen(report), 0.0))
    before.play(20.0)
    again = before.restarted()
    back = before.now + connected_after_s
    kept = [(back, will("a", kept=True)), (back, will("b", kept=True))]
    again.play(back + 200.0, *kept, (back + 0.5, LinkCaughtUp()), *beats("b", back + 58.0, back + 200.0))
    assert again.told == ["lost a", "policy a"]
    assert again.lost_at["a"] == pytest.approx(back + 0.5 + 90.0, abs=2 * again.tick_s)


def test_reports_that_nobody_had_time_to_read_are_signs_of_life() -> None:
    """An agent that sends reports sends no heartbeats. A node that sends nothing is lost as before."""
    watched = Watched()
    deferred: list[tuple[float, FleetEvent]] = [
        (float(at), LoadSeen(CoordinatorLoad(lag_s=1.0), frozenset({"a", "unknown"}))) for at in range(5, 100, 5)
    ]
    watched.play(100.0, *deferred)
    assert set(watched.lost_at) == {"b"}
    assert "unknown" not in watched.fleet.names


def test_a_node_that_was_lost_before_an_outage_stays_lost_until_it_is_heard() -> None:
    """The outage neither repeats nor ends it."""
    watched = Watched()
    watched.play(20.0, (5.0, goodbye()), *beats("b", 0.0, 20.0))
    watched.play(60.0, (21.0, LinkLost()), (50.0, BACK[0]), (50.0, BACK[1]), (55.0, heartbeat()))
    assert watched.told == ["lost a", "policy a", "back a"]


# Versions


def test_an_agent_of_the_last_version_is_taken_for_one_that_sends_wills() -> None:
    """Its offline message does not say which it is. Taken for a will, it cannot make a fleet lost by mistake."""
    said = b'{"schema": 1, "id": "m", "sent_at": 1.0, "node": "a", "online": false, "version": "0.0.9"}'
    message = decode(said, PRESENCE)
    assert (message.goodbye, message.process) == (False, "")
    watched = Watched()
    watched.play(20.0, (5.0, PresenceSeen(message)), *beats("b", 0.0, 20.0))
    assert watched.lost_at == {"a": 10.0}


def test_a_coordinator_of_the_last_version_reads_what_it_knows() -> None:
    """The new fields are added ones, and `online` says what it said."""
    said = encode(goodbye().message)
    for field_name, value in (("online", b"false"), ("goodbye", b"true"), ("process", b'""')):
        assert b'"%s":%s' % (field_name.encode(), value) in said
    assert decode(said, PRESENCE).online is False


# Restarts of an agent


def test_an_agent_that_restarts_quickly_is_not_lost() -> None:
    """Its will and its return within some seconds tell nothing in its story."""
    watched = Watched()
    script = [(1.0, heartbeat(process="p1")), (5.0, will()), (7.0, heartbeat(process="p2"))]
    watched.play(30.0, *script, *beats("b", 0.0, 30.0))
    assert watched.told == []


@cases(("process", "aborted"), [("p1", []), ("", []), ("p2", ["abort a", "abort b"])], ids=["same", "older", "new"])
def test_a_group_loses_a_member_whose_agent_was_restarted(process: str, aborted: list[str]) -> None:
    """The new process knows nothing of the group. The same process, after another connection, goes on with it."""
    made = fleet("a", "b")
    made.handle(heartbeat(process="p1"), 1.0)
    made.handle(sweep("s", strategy="whole", nodes=("a", "b")), 2.0)
    made.handle(will(), 3.0)
    told = kinds(made.handle(heartbeat(process=process), 4.0))
    assert [word for word in told if word.startswith("abort")] == aborted
    assert "tell lost" not in told


def test_an_unknown_node_that_says_goodbye_means_nothing() -> None:
    """As its will does."""
    assert kinds(Fleet(name="test", epoch=7).handle(goodbye("x"), 1.0)) == []
