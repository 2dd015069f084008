"""Short ids of sweeps."""

import re

from muster_coordinator.model.sweep_id import shortened, sweep_id


def test_an_id_is_short_and_always_the_same():
    """Of eight small letters and digits; another text gives another id."""
    ids = [sweep_id(f"1795393028-{number}") for number in range(1000)]
    assert all(re.fullmatch("[a-z2-7]{8}", one) for one in ids)
    assert len(set(ids)) == 1000
    assert sweep_id("1795393028-0") == ids[0]


def test_long_ids_are_shortened_as_far_as_they_stay_apart():
    """To eight characters at least; what one id has in common with another does not lengthen a third."""
    ids = ["1795393028-1", "1795393028-2", "f" * 32, "abcdefgh"]
    assert shortened(ids) == {
        "1795393028-1": "1795393028-1",
        "1795393028-2": "1795393028-2",
        "f" * 32: "f" * 8,
        "abcdefgh": "abcdefgh",
    }


def test_an_id_that_another_begins_with_stays_whole():
    """The other one gets as many characters as tell it apart."""
    assert shortened(["1795393028-1", "1795393028-12"]) == {
        "1795393028-1": "1795393028-1",
        "1795393028-12": "1795393028-12",
    }
    assert shortened([]) == {}
