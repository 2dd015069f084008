"""The commands that store comparisons with the fleet: baselines, fingerprints, and the devices of nodes in them."""

from dataclasses import dataclass

from muster_coordinator.model.baselines import BaselineRecord, FingerprintRecord, LevelsRecord, ResultsRecord


@dataclass(frozen=True, slots=True)
class SaveBaseline:
    """Store a baseline in place of the stored one."""

    record: BaselineRecord


@dataclass(frozen=True, slots=True)
class SaveLevels:
    """Store the devices of a node in a baseline in place of the stored ones."""

    record: LevelsRecord


@dataclass(frozen=True, slots=True)
class SaveFingerprint:
    """Store a comparison of fingerprints in place of the stored one."""

    record: FingerprintRecord


@dataclass(frozen=True, slots=True)
class SaveResults:
    """Store the fingerprints of a node's devices in place of the stored ones."""

    record: ResultsRecord


@dataclass(frozen=True, slots=True)
class EraseBaseline:
    """Delete a baseline, or a comparison of fingerprints, with all its devices."""

    baseline: str
