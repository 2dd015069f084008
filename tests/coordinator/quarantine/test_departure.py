"""A node whose agent announces that it leaves, such as by a notice of its cloud."""

from typing import Any

from muster.model import ServiceState
from muster.transition import Mark
from muster_coordinator.model.quarantine_events import Note
from muster_coordinator.quarantine.policy import LONGEST_DEPARTURE_S

WHY = "Google Cloud preempts it"


def notes(commands: Any) -> list[str]:
    return [command.text for command in commands if isinstance(command, Note)]


def test_a_node_that_left_as_announced_is_no_fault(quarantine: Any) -> None:
    """It has left the fleet at once, and is neither lost nor to be cordoned, whatever it showed at last."""
    told = quarantine(3)
    told.describe("a", departure=WHY)
    told.accuse("a", "nvml.gone")
    assert (told.state("a"), told.case("a").leaving, told.case("a").requirement) == (
        ServiceState.IN_SERVICE,
        WHY,
        None,
    )
    assert f"Silent, as announced: {WHY}" in notes(told.lose("a"))
    told.wait(3000)
    assert (told.case("a").left, told.state("a")) == (True, ServiceState.IN_SERVICE)


def test_a_node_that_stays_after_all_is_judged_again(quarantine: Any) -> None:
    """The story has both."""
    told = quarantine(3)
    told.describe("a", departure=WHY)
    told.accuse("a", "nvml.gone")
    told.describe("a")
    assert told.state("a") is ServiceState.CORDONED
    assert [text for text in notes(told.said) if "eaving" in text] == [f"Leaving: {WHY}", f"No longer leaving: {WHY}"]


def test_an_announcement_is_not_believed_for_ever(quarantine: Any) -> None:
    """An agent that lies, or a cloud that forgets its notice, keeps a faulty node in service for hours at most."""
    told = quarantine(3)
    told.describe("a", departure=WHY)
    told.accuse("a", "nvml.gone")
    told.wait(LONGEST_DEPARTURE_S - 1)
    assert told.state("a") is ServiceState.IN_SERVICE
    told.describe("a", departure=WHY)
    told.accuse("a", "nvml.gone")
    told.wait(1)
    assert told.state("a") is ServiceState.CORDONED


def test_a_machine_that_takes_the_name_is_accepted_first(quarantine: Any) -> None:
    """Clouds make the next machine under the same name, on another host."""
    told = quarantine(3)
    told.describe("a", departure=WHY)
    told.lose("a")
    told.hear("a")
    told.describe("a")
    assert (told.case("a").left, told.case("a").leaving) == (False, None)
    assert told.state("a") is ServiceState.ACCEPTING


def test_a_node_stays_in_the_fleet_while_a_scheduler_lists_it(quarantine: Any) -> None:
    """A host that restarts for maintenance keeps its place there."""
    told = quarantine(3)
    told.survey("a", Mark.NONE)
    told.describe("a", departure="AWS reboots its host")
    told.lose("a")
    told.wait(3000)
    assert (told.case("a").left, told.state("a")) == (False, ServiceState.IN_SERVICE)
    told.hear("a")
    assert told.case("a").leaving == "AWS reboots its host"


def test_a_restart_of_the_coordinator_forgets_nothing(quarantine: Any) -> None:
    """The announcement is part of what is stored."""
    told = quarantine(3)
    told.describe("a", departure=WHY)
    told.restart()
    assert told.case("a").leaving == WHY
