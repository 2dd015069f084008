"""Keeps checks that look at the machine itself away from simulated nodes."""

from muster import Context, Skip


def must_be_real(context: Context) -> None:
    """Skip on a node with simulated devices: the machine that runs it is none of the fleet."""
    if any(device.simulated for device in context.devices):
        raise Skip("the devices of this node are simulated")
