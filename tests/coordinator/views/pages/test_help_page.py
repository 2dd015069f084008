"""What the help says about the words of the pages."""

from muster.model import ServiceState
from muster_coordinator.views.pages.help_page import CONDITIONS, SERVICES
from muster_coordinator.views.pages.page_row import RowCondition


def test_every_word_is_explained():
    """Conditions, the worst first, and service states."""
    assert [*CONDITIONS] == [*RowCondition]
    assert [*SERVICES] == [*ServiceState]
