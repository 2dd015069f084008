"""Messages that refuse a name."""

import random
import time

import pytest

from muster.errors import MusterError, Refused, RemoteError, SettingsError, Unavailable, unknown


def test_unknown_names_the_nearest_and_all_valid_names():
    """A typo is answered with the nearest valid name and the list of all."""
    assert unknown("check", "gem", ["nvml", "gemm"]) == (
        "unknown check 'gem'; did you mean 'gemm'? (valid: gemm, nvml)"
    )


def test_unknown_without_anything_near():
    """A name that resembles nothing gets no suggestion, and an empty list says so."""
    assert unknown("node", "zz", ["alpha"]) == "unknown node 'zz' (valid: alpha)"
    assert unknown("node", "zz", []) == "unknown node 'zz' (valid: none)"


def test_unknown_does_not_list_thousands():
    """In a fleet of thousands the message stays readable and still finds the nearest name."""
    message = unknown("node", "node-17x", [f"node-{number}" for number in range(4000)])
    assert "did you mean 'node-17'?" in message
    assert message.endswith("and 3970 more)")


def test_a_refusal_repeats_only_the_start_of_a_long_value():
    """The rest of the message says what would be right, and is not lost behind thousands of characters."""
    message = unknown("node", "a" * 100_000, ["n1"])
    assert message == f"unknown node '{'a' * 299}… (valid: n1)"


@pytest.mark.parametrize("length", [64, 250])
def test_unknown_is_fast_for_hostile_names(length):
    """One node can announce thousands of names with the same letters in another order."""
    letters = "".join(chr(ord("a") + number % 8) for number in range(length))
    shuffled = random.Random(1)
    made_up = ["".join(shuffled.sample(letters, length)) for _ in range(4000)]
    begun = time.process_time()
    assert unknown("check", letters, made_up).startswith(f"unknown check {letters!r}")
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(("error", "code"), [(MusterError, 64), (SettingsError, 64), (Refused, 64), (Unavailable, 69)])
def test_exit_codes(error, code):
    """Wrong usage exits with 64, what cannot be reached with 69."""
    assert error("x").exit_code == code


def test_remote_errors_are_not_for_the_person_at_the_keyboard():
    """A peer's bytes never end a process as a usage error would."""
    error = RemoteError("malformed", "not JSON")
    assert not isinstance(error, MusterError)
    assert (error.kind, str(error)) == ("malformed", "malformed: not JSON")
