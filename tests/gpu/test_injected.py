"""What goes wrong on a real GPU is caught: elements, bits and steps are made wrong on purpose."""

import pytest

pytestmark = pytest.mark.gpu


def test_sound_products_are_sound_in_every_format(on_the_gpu):
    """Nothing is wrong with any, and a second process comes to the same bits."""
    first, second = (on_the_gpu("products", "0") for _ in range(2))
    assert {"fp32", "fp16"} <= first.keys()
    for dtype, outcome in first.items():
        assert (dtype, outcome["changed"], outcome["not_finite"], outcome["wrong"]) == (dtype, 0, 0, 0)
        assert (dtype, outcome["fingerprint"]) == (dtype, second[dtype]["fingerprint"])


def test_one_wrong_element_is_caught_in_every_format(on_the_gpu):
    """One of two million in every third product changes the bits, one in every product spoils the known sums."""
    sometimes, always = (on_the_gpu("products", every) for every in ("3", "1"))
    for dtype in sometimes:
        assert 0 < sometimes[dtype]["changed"] < 20, dtype
        assert always[dtype]["wrong"] == 2, dtype


def test_one_flipped_bit_is_caught_with_its_address(on_the_gpu):
    """In a GiB of random words."""
    verified = on_the_gpu("flipped_bit")
    assert verified["wrong_words"] == 1
    (mismatch,) = verified["mismatches"]
    assert int(mismatch["address"], 16) == verified["address"]
    assert mismatch["offset_bytes"] == verified["offset"]
    assert int(mismatch["expected"], 16) ^ int(mismatch["found"], 16) == 1 << 40


def test_one_wrong_element_of_a_large_message_is_caught_in_little_memory(on_the_gpu):
    """Of 9 GiB, which is more elements than 32 bits count."""
    found = on_the_gpu("large_message", "9")
    assert (found["before"], found["after"]) == (0, 1)
    assert found["besides"] < 1 << 30


def test_device_memory_does_not_count_as_memory_of_the_run(on_the_gpu):
    """The limit is for the host's memory, and CUDA's address space must not reach it."""
    found = on_the_gpu("host_memory")
    assert found["after"] - found["before"] < 4 << 30, found


def test_steps_that_overflow_are_left_out_and_forgotten(on_the_gpu):
    """The loss falls as soon as the scale has come down."""
    losses = on_the_gpu("overflow")
    assert losses[-1] < 0.7 * losses[0]
