"""The plugin `reservation_file`: for schedulers that a prolog or a script keeps off a node while a file is there.

A file of somebody else keeps muster off in turn. Runs that reserve the node are told whose it is; for all others, which
are background runs, there is the idle probe.
"""

from collections.abc import Iterable
from functools import partial

from pydantic import Field

from muster import Config, Idleness, IdleProbe, Reservation, Section, hookimpl
from muster.home_path import HomePath
from muster_plugins.schedulers.reservation_file.mark import Mark

NAME = "reservation_file"


class ReservationFileSettings(Section):
    """The table `[plugins.reservation_file]`."""

    path: HomePath | None = Field(
        None, description="While this file exists, whoever made it has the node; unset: no file reserves it"
    )


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, ReservationFileSettings)


@hookimpl
def muster_reservations(config: Config) -> Iterable[Reservation]:
    return [Reservation(name=NAME, reserve=mark.make, release=mark.remove) for mark in _marks(config)]


@hookimpl
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    return [IdleProbe(name=NAME, probe=partial(probe, mark)) for mark in _marks(config)]


def probe(mark: Mark, _own: frozenset[int]) -> Idleness:
    """BUSY while somebody else has the file."""
    return Idleness.BUSY if mark.is_anothers() else Idleness.IDLE


def _marks(config: Config) -> list[Mark]:
    """The file, if there is to be one."""
    path = config.plugin(NAME, ReservationFileSettings).path
    who = f"muster on node {config.settings.node} of fleet {config.settings.fleet}"
    return [] if path is None else [Mark(path, who)]
