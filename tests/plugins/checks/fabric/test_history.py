"""Ports over time: drops, flaps, and what is remembered."""

from tests.cases import cases

from muster_plugins.checks.fabric.history import FLAP_WINDOW_S, FabricHistory, PortHistory
from muster_plugins.checks.fabric.sysfs import Port

UP = Port(device="mlx5_0", number=1, state="ACTIVE", phys_state="LinkUp", rate_gbitps=400)
DOWN = UP.model_copy(update={"state": "DOWN", "phys_state": "Polling", "rate_gbitps": 10})
SILENT = Port(device="mlx5_0", number=1, unreadable={"state": "Input/output error"})


def watch(*looks: tuple[float, Port]):
    """What the history says at the last of the looks, which are pairs of a time in seconds and a port."""
    history = PortHistory()
    return [history.observe(port, now) for now, port in looks][-1]


@cases(
    ("looks", "down_s"),
    [
        ([(0, UP)], 0),
        ([(0, UP), (30, DOWN)], 0),
        ([(0, UP), (30, DOWN), (300, DOWN)], 270),
        ([(0, UP), (30, DOWN), (300, DOWN), (330, UP)], 0),
        ([(0, UP), (30, DOWN), (60, SILENT), (90, DOWN)], 60),
        ([(0, DOWN), (500, DOWN)], 500),
    ],
    ids=["up", "just down", "down", "up again", "unreadable in between", "never up"],
)
def test_how_long_a_port_has_been_down(looks, down_s):
    """The time goes from the first reading that saw it down to the last; an unreadable state is neither up nor down."""
    assert watch(*looks).down_s == down_s


@cases(
    ("looks", "times"),
    [
        ([(0, UP), (30, DOWN), (60, DOWN), (90, UP)], 1),
        ([(0, UP), (30, DOWN), (60, UP)], 0),
        ([(0, UP), (30, DOWN), (50, DOWN), (60, UP)], 0),
        ([(0, DOWN), (30, DOWN), (60, UP)], 0),
        ([(0, UP), (30, DOWN), (60, DOWN), (90, UP), (120, DOWN), (150, DOWN), (180, UP)], 2),
        ([(0, UP), (30, DOWN), (60, DOWN), (90, UP), (91 + FLAP_WINDOW_S, UP)], 0),
    ],
    ids=["once", "seen down once only", "down for too short", "coming up first", "twice", "too long ago"],
)
def test_how_often_a_port_came_back(looks, times):
    """Only after two looks at least 25 s apart saw it down, and it is forgotten after twelve hours."""
    assert watch(*looks).reactivations == times


def test_the_highest_rate_of_an_active_port_is_remembered():
    """A link that returns with fewer lanes is compared with its earlier rate; a down port has no rate."""
    slow = UP.model_copy(update={"rate_gbitps": 200.0})
    assert watch((0, DOWN)).best_rate_gbitps is None
    assert watch((0, UP), (30, DOWN), (60, slow)).best_rate_gbitps == 400


def test_ports_that_were_active_are_missed_and_others_forgotten():
    """A virtual function that was never in use may go; memory stays bounded by the ports that were active."""
    history = FabricHistory()
    spare = DOWN.model_copy(update={"device": "mlx5_9"})
    history.observe([UP, spare], 0)
    assert history.observe([], 30) == ((), {"mlx5_0/1": 0.0})
    assert history.observe([], 90) == ((), {"mlx5_0/1": 60.0})
    (back,), gone = history.observe([UP], 120)
    assert (back.remembered, back.reactivations, gone) == (True, 1, {})
    assert set(history._ports) == {"mlx5_0/1"}


def test_errors_are_counted_from_the_second_look_on():
    """The first reading has nothing to compare with, so its counts are None."""
    first = UP.model_copy(update={"counters": {"link_downed": 3}})
    second = UP.model_copy(update={"counters": {"link_downed": 4}})
    assert watch((0, first)).counted is None
    assert watch((0, first), (30, second)).counted == {"link_downed": 1}
