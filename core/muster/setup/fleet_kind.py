"""The kinds of fleets that `muster init` knows. Imported by the command line before anything else is."""

from enum import StrEnum


class FleetKind(StrEnum):
    """How the parts of muster are started, and which scheduler there is."""

    MACHINE = "machine"
    SYSTEMD = "systemd"
    SLURM = "slurm"
    KUBERNETES = "kubernetes"


SUMMARIES = {
    FleetKind.MACHINE: "one machine, with systemd",
    FleetKind.SYSTEMD: "hosts with systemd and no scheduler, or one that muster does not know",
    FleetKind.SLURM: "hosts with systemd and Slurm",
    FleetKind.KUBERNETES: "a Kubernetes cluster",
}

WITH_A_BROKER = (FleetKind.SYSTEMD, FleetKind.SLURM)
"""Kinds with a host for broker and coordinator, and with certificates for nodes that are named."""
