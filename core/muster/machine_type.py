"""Which of several sources counts for the machine type of a node.

The operator's setting has precedence over the labels of the scheduler, these over what a plugin says, that over the
metadata server of the cloud, and that over the firmware (DMI). If the sources disagree, the first one still counts, and
`disagreement` says so: nobody would notice a machine that is judged by the references of another one. The operator's
setting ends the dispute.

A name from the firmware does not disagree with the others, because it names something else: `a4-highgpu-8g` is what a
cloud rents out, and `PowerEdge XE9680` is what a maker has built.
"""

import re
from collections.abc import Iterable, Mapping

from muster.model import MachineType, MachineTypeSource

LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
"""The keys of labels with the machine type. The first key that a node has counts; the second is its former name."""

SET_IT = "set agent.machine_type on the node"
"""What a person can do if the machine type is unknown or wrong."""

_OF_DISTRIBUTIONS = frozenset({"k3s", "rke2"})
"""Values that these distributions of Kubernetes write where no cloud names a machine type."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

_BY_PRECEDENCE = tuple(MachineTypeSource)


def is_machine_type(text: str) -> bool:
    """Whether this can be a machine type of a cloud: as short as a label, and of the same characters."""
    return _NAME.fullmatch(text) is not None


def labelled_machine_type(labels: Mapping[str, str]) -> MachineType | None:
    """The machine type in the labels of a node; None if none of them has it."""
    for key in LABELS:
        if is_machine_type(name := labels.get(key, "")) and name not in _OF_DISTRIBUTIONS:
            return MachineType(name=name, source=MachineTypeSource.LABEL, said_by=key)
    return None


def by_precedence(found: Iterable[MachineType]) -> tuple[MachineType, ...]:
    """The machine types that several sources name, the one that counts first, each source once."""
    ordered = sorted(found, key=lambda each: _BY_PRECEDENCE.index(each.source))
    return tuple({(each.source, each.said_by): each for each in reversed(ordered)}.values())[::-1]


def disagreement(found: tuple[MachineType, ...]) -> str:
    """What the sources say, for people, if they name several machine types and no operator has decided; else empty."""
    if any(each.source is MachineTypeSource.SETTING for each in found):
        return ""
    comparable = [each for each in found if each.source is not MachineTypeSource.DMI]
    if len({each.name for each in comparable}) < 2:
        return ""
    return ", ".join(map(with_source, comparable))


_SOURCES = {
    MachineTypeSource.SETTING: "setting",
    MachineTypeSource.LABEL: "label",
    MachineTypeSource.PLUGIN: "plugin",
    MachineTypeSource.CLOUD: "metadata server of",
    MachineTypeSource.DMI: "firmware,",
}


def all_with_source(machine_type: str | None, found: Iterable[MachineType]) -> list[str]:
    """The machine type and what each source says, for people; an older agent names no source."""
    return [*map(with_source, found)] or [*filter(None, (machine_type,))]


def with_source(machine_type: MachineType) -> str:
    """The name with its source, for people: `a4-highgpu-8g (label node.kubernetes.io/instance-type)`."""
    return f"{machine_type.name} ({_SOURCES[machine_type.source]} {machine_type.said_by})"
