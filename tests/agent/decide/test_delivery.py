"""What of the outbox is sent when."""

import math

from muster_agent.decide.delivery import MAX_PATIENCE_S, PATIENCE_S, WINDOW, DeliveryWindow


def test_what_is_sent_and_stored_leaves_nothing_due():
    """All is well when the coordinator has stored what was sent."""
    delivery = DeliveryWindow()
    delivery.sent(3, 0.0)
    assert delivery.next_due() == PATIENCE_S
    delivery.stored(3, gap=False, now=0.1)
    assert (delivery.sent_through, delivery.next_due()) == (3, math.inf)


def test_silence_sends_again_from_the_oldest_and_waits_longer_each_time():
    """The wait doubles up to its limit."""
    delivery, now, pauses = DeliveryWindow(), 0.0, []
    for _ in range(6):
        delivery.sent(3, now)
        pauses.append(delivery.next_due() - now)
        now = delivery.next_due()
        delivery.tick(now)
        assert delivery.sent_through == 0
    assert pauses == [5.0, 10.0, 20.0, 40.0, MAX_PATIENCE_S, MAX_PATIENCE_S]


def test_progress_gives_patience_back():
    """After new acknowledgements, the wait is the first one again."""
    delivery = DeliveryWindow()
    delivery.sent(3, 0.0)
    delivery.tick(PATIENCE_S)
    delivery.sent(3, 10.0)
    delivery.stored(2, gap=False, now=11.0)
    assert delivery.next_due() == 11.0 + PATIENCE_S


def test_more_that_is_sent_does_not_put_off_the_answer_that_is_due():
    """A node that reports often notices silence, too."""
    delivery = DeliveryWindow()
    delivery.sent(1, 0.0)
    delivery.sent(2, 4.0)
    assert delivery.next_due() == PATIENCE_S


def test_a_gap_sends_again_at_once():
    """The coordinator reports missing runs."""
    delivery = DeliveryWindow()
    delivery.sent(9, 0.0)
    delivery.stored(4, gap=True, now=1.0)
    assert delivery.sent_through == 0


def test_a_tick_before_it_is_due_changes_nothing():
    """Runs that were just sent have time to be acknowledged."""
    delivery = DeliveryWindow()
    delivery.sent(9, 0.0)
    delivery.tick(1.0)
    assert delivery.sent_through == 9


def test_only_a_window_of_runs_is_on_the_way():
    """A coordinator that stores nothing causes little traffic."""
    delivery = DeliveryWindow()
    assert delivery.free(0) == WINDOW
    assert delivery.free(WINDOW - 1) == 1
    assert delivery.free(2 * WINDOW) == 0
