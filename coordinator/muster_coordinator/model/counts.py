"""Counters of the fleet."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Numbers of events since the start, for metrics."""

    reports: int = 0
    runs: int = 0
    repeats: int = 0
    duplicates: int = 0
    repeated_reports: int = 0
    gaps: int = 0
    over_quota: int = 0
    not_announced: int = 0
    sweeps: int = 0
    sweeps_not_begun: int = 0
    groups: int = 0
