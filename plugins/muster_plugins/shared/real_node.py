"""Keeps checks of the host itself away from simulated nodes."""

from muster import Context, Skip


def must_be_real(context: Context) -> None:
    """Raises Skip on a node with simulated devices, because its host is not part of the fleet."""
    if any(device.simulated for device in context.devices):
        raise Skip("the devices of this node are simulated")
