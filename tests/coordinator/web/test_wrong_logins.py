"""Wrong tokens: a client may try a few, then has to wait."""

from muster_coordinator.web.wrong_logins import BURST, MOST_ADDRESSES, PER_S, WrongLogins


def test_a_client_waits_after_a_few_wrong_tokens():
    """Each address for itself, until time has passed."""
    wrong = WrongLogins()
    for _ in range(int(BURST)):
        assert wrong.wait_s("10.0.0.1", 100.0) == 0
        wrong.note("10.0.0.1", 100.0)
    assert wrong.wait_s("10.0.0.1", 100.0) == 1 / PER_S
    assert wrong.wait_s("10.0.0.2", 100.0) == 0
    assert wrong.wait_s("10.0.0.1", 100.0 + 1 / PER_S) == 0


def test_the_addresses_are_bounded():
    """Many addresses take no memory for ever."""
    wrong = WrongLogins()
    for _ in range(int(BURST)):
        wrong.note("10.0.0.1", 0.0)
    for number in range(MOST_ADDRESSES - 1):
        wrong.note(f"fd00::{number}", 0.0)
    assert wrong.wait_s("10.0.0.1", 0.0) > 0
    wrong.note("fd01::", 0.0)
    assert wrong.wait_s("10.0.0.1", 0.0) == 0
