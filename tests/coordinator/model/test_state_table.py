"""State machines that are written as tables."""

from enum import StrEnum

import pytest

from muster_coordinator.model.state_table import parse_state_table


class Lamp(StrEnum):
    ON = "ON"
    OFF = "OFF"


class Switch(StrEnum):
    PRESSED = "PRESSED"
    CUT = "CUT"


def test_a_table_says_where_each_step_leads():
    """A dot says that a step changes nothing."""
    table = """
         PRESSED  CUT
    ON   OFF      OFF
    OFF  ON       .
    """
    assert parse_state_table(table, Lamp, Switch) == {
        (Lamp.ON, Switch.PRESSED): Lamp.OFF,
        (Lamp.ON, Switch.CUT): Lamp.OFF,
        (Lamp.OFF, Switch.PRESSED): Lamp.ON,
    }


@pytest.mark.parametrize("table", ["PRESSED\nON OFF OFF", "PRESSED CUT\nON OFF", "PRESED\nON OFF", "CUT\nDIM OFF"])
def test_a_table_with_a_slip_is_refused(table):
    """A cell too many or too few, or a name that there is not."""
    with pytest.raises(ValueError, match=r"zip|not a valid"):
        parse_state_table(table, Lamp, Switch)
