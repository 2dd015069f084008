"""The stored comparisons of the fleet that wait to be restored after a restart.

The idea: a fleet of 10,000 nodes has a million compared devices, which take seconds to restore, and a coordinator that
starts has to decide at once. So each comparison waits until a run needs it, and the others follow one after the other
with the ticks. Those that have found a fault of the whole fleet come first, because they show.

A baseline of an earlier release has no founder. What it was compared with was not stored, so it waits for a run, and
counts as measured only then.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from muster.model import Json
from muster_coordinator.model.baselines import BaselineRecord, FingerprintRecord, LevelsRecord, ResultsRecord
from muster_coordinator.model.hardware_kind import HardwareKind
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.normal.comparability import hardware_in


@dataclass(slots=True)
class StoredComparisons:
    """What is stored, by the key of the comparison. A key is removed when its comparison is restored."""

    baselines: dict[str, BaselineRecord] = field(default_factory=dict)
    levels: dict[str, Iterable[LevelsRecord]] = field(default_factory=dict)
    fingerprints: dict[str, FingerprintRecord] = field(default_factory=dict)
    results: dict[str, Iterable[ResultsRecord]] = field(default_factory=dict)
    alike: Mapping[HardwareKind, int] = field(default_factory=dict)

    @classmethod
    def of(cls, saved: StoredFleet, alike: Mapping[HardwareKind, int]) -> Self:
        """What is stored of a fleet with `alike` nodes of each kind of hardware."""
        return cls(
            {record.id: record for record in saved.baselines},
            {**saved.levels},
            {record.id: record for record in saved.fingerprints},
            {**saved.results},
            {**alike},
        )

    def __len__(self) -> int:
        return sum(1 for _ in self.measured())

    def measured(self) -> Iterator[str]:
        """The keys of the comparisons with their measurements, those with a fault of the whole fleet first."""
        whole: list[BaselineRecord | FingerprintRecord] = [*self.fingerprints.values()]
        whole += [record for record in self.baselines.values() if record.founder is not None]
        return (record.id for record in sorted(whole, key=lambda record: record.since is None))

    def alike_under(self, when: Json) -> int:
        """The number of nodes of the kind of hardware in the conditions of a baseline."""
        return self.alike.get(hardware_in(when), 0)

    def take_baseline(self, key: str) -> tuple[BaselineRecord, list[LevelsRecord]]:
        """Removes and returns what is stored of a baseline."""
        return self.baselines.pop(key), self.take_levels(key)

    def take_levels(self, key: str) -> list[LevelsRecord]:
        """Removes and returns the devices of a baseline, of nodes that have not left."""
        return [record for record in self.levels.pop(key, ()) if record.levels]

    def take_fingerprint(self, key: str) -> tuple[FingerprintRecord, list[ResultsRecord]]:
        """Removes and returns what is stored of a comparison of fingerprints."""
        results = (record for record in self.results.pop(key, ()) if record.results)
        return self.fingerprints.pop(key), [*results]

    def forget(self, node: str) -> set[str]:
        """Removes the levels of a node that has left. Returns the keys of the baselines that had some."""
        had = set()
        for key, levels in self.levels.items():
            kept = [*levels]
            self.levels[key] = others = [record for record in kept if record.node != node]
            if len(others) < len(kept):
                had.add(key)
        return had
