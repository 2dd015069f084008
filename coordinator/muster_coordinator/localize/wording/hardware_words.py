"""Sentences about how the kinds of hardware in a sweep were compared."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from muster.nouns import count
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hardware import ComparedKind, KnownHardware, name_of


@dataclass(frozen=True)
class HardwareWords:
    """Sentences about the hardware in `evidence`; `amount` gives a value with its unit."""

    evidence: GroupEvidence
    amount: Callable[[float], str]

    @property
    def compared(self) -> Mapping[str, tuple[str, ...]]:
        """The nodes of each kind that were compared with each other; empty if all were."""
        hardware = self.evidence.hardware
        return {name_of(kind): nodes for kind, nodes in hardware.kinds.items()} if hardware.are_several else {}

    def sentences(self) -> Iterable[str]:
        """How each kind was compared, and which paths were not crossed because nodes of one kind run together."""
        hardware = self.evidence.hardware
        for kind, nodes in hardware.kinds.items() if hardware.are_several else ():
            yield f"{len(nodes)} nodes with hardware {name_of(kind)} were compared with each other{self._typical(kind)}"
        for kind, nodes in hardware.rare.items():
            if kind != (other := hardware.kind_of(nodes[0])):
                only = "is the only node" if len(nodes) == 1 else "are the only nodes"
                named = f"with hardware {name_of(kind)}: compared with hardware {name_of(other)}"
                yield f"{' and '.join(nodes)} {only} {named}"

        if paths := self.evidence.uncrossed_between_kinds:
            yield (
                f"no group crossed {count(len(paths), 'path')} between leaves with different hardware, such as"
                f" {' to '.join(min(paths).ends)}; another sweep crosses others"
            )

    def _typical(self, kind: ComparedKind) -> str:
        """What runs of this kind typically reach; empty if too few ran."""
        thresholds = self.evidence.thresholds.among(kind)
        levels = [level.typical for level in (thresholds.together, thresholds.within) if level is not None]
        alone = [] if thresholds.alone is None else [thresholds.alone.typical]
        found = levels or alone
        return f": typical is {self.amount(max(found))}" if found else ""


def with_hardware(hardware: KnownHardware, members: Iterable[str]) -> str:
    """The hardware of the groups with which a group of these members is compared; empty if there is one kind only."""
    names = sorted(map(name_of, hardware.kinds_of(members)))
    return f" with hardware {' and '.join(names)}" if hardware.are_several else ""
