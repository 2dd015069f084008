"""What of the outbox is sent when."""

import math

from muster_agent.decide.delivery import MAX_PATIENCE_S, ONE_REPORT, PATIENCE_S, WINDOW, DeliveryWindow


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


def test_each_report_after_a_gap_says_so_and_only_the_first_counts():
    """Else each of ten reports on the way would make the agent send the oldest again."""
    delivery = DeliveryWindow()
    delivery.sent(9, 0.0)
    delivery.stored(4, gap=True, now=1.0)
    delivery.sent(6, 1.0)
    delivery.stored(4, gap=True, now=1.1)
    assert delivery.sent_through == 6
    delivery.stored(5, gap=True, now=1.2)  # it has stored some of them, and misses others
    assert delivery.sent_through == 0


def test_a_gap_that_stays_is_heard_again_after_a_while():
    """The report that should have closed it may be lost, too."""
    delivery = DeliveryWindow()
    delivery.stored(4, gap=True, now=1.0)
    delivery.sent(6, 1.0)
    delivery.stored(4, gap=True, now=1.0 + PATIENCE_S)
    assert delivery.sent_through == 0


def test_the_window_begins_with_one_report_and_doubles_with_each_acknowledgement():
    """An agent that comes back with thousands of runs does not send them all at once."""
    delivery, windows, through = DeliveryWindow(), [], 0
    for _ in range(6):
        windows.append(delivery.free(0))
        through += windows[-1]
        delivery.sent(through, 0.0)
        assert delivery.free(windows[-1]) == 0
        delivery.stored(through, gap=False, now=0.1)
    assert windows == [ONE_REPORT, 100, 200, 400, WINDOW, WINDOW]
    assert delivery.free(WINDOW - 1) == 1
    assert delivery.free(2 * WINDOW) == 0


def test_until_the_first_acknowledgement_one_report_is_on_the_way():
    """However few runs it has: if the coordinator drops it, others would be of no use."""
    delivery = DeliveryWindow()
    delivery.sent(1, 0.0)
    assert delivery.free(1) == 0
    delivery.stored(1, gap=False, now=0.1)
    delivery.sent(2, 0.2)
    assert delivery.free(1) == 2 * ONE_REPORT - 1


def test_an_acknowledgement_of_nothing_new_does_not_open_the_window():
    """A duplicate is acknowledged, too."""
    delivery = DeliveryWindow()
    delivery.sent(3, 0.0)
    delivery.stored(3, gap=False, now=0.1)
    delivery.stored(3, gap=False, now=0.2)
    assert delivery.free(0) == 2 * ONE_REPORT


def test_silence_leaves_one_report_on_the_way():
    """An overloaded coordinator gets the oldest report again, and nothing else."""
    delivery = DeliveryWindow()
    for through in (50, 100, 200, 400):
        delivery.sent(through, 0.0)
        delivery.stored(through, gap=False, now=0.1)
    delivery.sent(900, 1.0)
    delivery.tick(1.0 + PATIENCE_S)
    assert delivery.free(0) == ONE_REPORT
