"""How a reading of devices becomes a measurement."""

import pytest

from muster_plugins.shared.devices.reading import DeviceReading, NodeReading


def measured(*devices: DeviceReading):
    return NodeReading(devices=devices).measurement()


def test_numbers_stand_in_device_order():
    """A device that does not say one leaves a gap, and what none of them says is left out."""
    devices = [DeviceReading(index=0, numbers={"power_w": 70.0}), DeviceReading(index=1, lost=True)]
    assert measured(*devices).metrics == {"power_w": [70.0, None]}


def test_a_healthy_device_takes_little_room_in_the_facts():
    """Facts are kept for every look, so only what is out of the ordinary stands there, next to the identity."""
    device = DeviceReading(index=3, uuid="GPU-3", numbers={"power_w": 70.0}, limits={"pcie_width_max": 16.0})
    assert measured(device).facts["devices"] == [{"index": 3, "uuid": "GPU-3"}]


@pytest.mark.parametrize(("generations", "fact"), [((), None), ((5.0, 5.0), 5.0), ((4.0, 5.0), None)])
def test_the_generation_of_the_links_is_a_fact_where_it_is_one(generations, fact):
    """References are keyed by it."""
    devices = (
        DeviceReading(index=index, limits={"pcie_generation_max": generation})
        for index, generation in enumerate(generations)
    )
    assert measured(*devices).facts["pcie_generation"] == fact
