"""Which orders are carried out, and how another host's clock is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.wire.messages import Start
from muster_agent.decide.admission import REMEMBERED_LAGS, CommandAdmission, PeerClock


def start(id: str = "c", epoch: int = 1, sent_at: float = 0.0, lives_s: float = 5.0) -> Start:
    return Start(id=id, epoch=epoch, sent_at=sent_at, expires_at=sent_at + lives_s, group="g")


def kind_of(refused):
    return refused and refused.kind


def test_an_order_is_carried_out_once():
    """QoS 1 may deliver it again."""
    admission = CommandAdmission()
    assert admission.refusal(start(), 0.1) is None
    assert kind_of(admission.refusal(start(), 0.2)) == "duplicate"


def test_an_order_of_an_older_epoch_is_refused():
    """Whether a newer one was seen in an order or in the coordinator's presence."""
    admission = CommandAdmission()
    admission.heard(0.0, 4, 0.0)
    assert kind_of(admission.refusal(start("a", epoch=3), 0.0)) == "old_epoch"
    assert admission.refusal(start("b", epoch=5), 0.0) is None
    assert kind_of(admission.refusal(start("c", epoch=4), 0.0)) == "old_epoch"
    assert admission.epoch == 5


@pytest.mark.parametrize("offset_s", [3600.0, -3600.0])
def test_a_new_leader_has_a_clock_of_its_own(offset_s):
    """What the agent knows about the clock of an earlier one says nothing about it."""
    admission = CommandAdmission()
    for second in range(REMEMBERED_LAGS):
        admission.heard(5000.0 + second, 1, 5000.0 + second)
    assert admission.refusal(start("a", epoch=2, sent_at=5100.0 + offset_s), 5100.0) is None
    admission.heard(5101.0, 1, 5101.0)
    assert admission.refusal(start("b", epoch=2, sent_at=5102.0 + offset_s), 5102.0) is None
    assert kind_of(admission.refusal(start("c", epoch=2, sent_at=5096.0 + offset_s), 5102.0)) == "expired"


@pytest.mark.parametrize("offset_s", [0.0, 3600.0, -3600.0])
def test_expiry_is_told_though_the_clocks_differ(offset_s):
    """What matters is how long an order was on its way, not what the clocks say."""
    admission = CommandAdmission()
    admission.heard(5000.0 + offset_s, 1, 5000.01)
    assert admission.refusal(start("a", sent_at=5010.0 + offset_s), 5012.0) is None
    assert kind_of(admission.refusal(start("b", sent_at=5010.0 + offset_s), 5015.5)) == "expired"


@given(st.floats(-1e5, 1e5), st.lists(st.floats(0, 100), min_size=1, max_size=REMEMBERED_LAGS))
def test_the_guess_is_off_by_no_more_than_the_fastest_message(offset_s, delays):
    """Delays only ever make a message later."""
    clock = PeerClock()
    for delay in delays:
        clock.heard(1000.0 + offset_s, 1000.0 + delay)
    assert clock.here(2000.0 + offset_s) == pytest.approx(2000.0 + min(delays), abs=1e-6)


def test_a_clock_that_was_set_is_believed_after_some_messages():
    """Old differences are forgotten."""
    clock = PeerClock()
    clock.heard(1000.0, 0.0)
    for _ in range(REMEMBERED_LAGS):
        clock.heard(0.0, 0.0)
    assert clock.here(5.0) == 5.0


def test_a_clock_that_was_never_heard_is_taken_as_ours():
    """There is nothing better to go by."""
    assert PeerClock().here(5.0) == 5.0
