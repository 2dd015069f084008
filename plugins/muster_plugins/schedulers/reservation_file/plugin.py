"""The plugin `reservation_file`, for schedulers whose prolog or script keeps work off a node while a file exists.

Another program's file in turn keeps muster off the node. Runs that reserve the node are refused with that program's
name; the idle probe covers background runs, which do not reserve.
"""

from collections.abc import Iterable
from functools import partial

from pydantic import Field

from muster import Config, Idleness, IdleProbe, Reservation, Section, hookimpl
from muster.home_path import HomePath
from muster_plugins.schedulers.reservation_file.mark import ReservationMark

NAME = "reservation_file"


class ReservationFileSettings(Section):
    """The table `[plugins.reservation_file]`."""

    path: HomePath | None = Field(None, description="File that reserves the node while it exists; unset: none")


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, ReservationFileSettings)


@hookimpl
def muster_reservations(config: Config) -> Iterable[Reservation]:
    return [Reservation(name=NAME, reserve=mark.make, release=mark.remove) for mark in _marks(config)]


@hookimpl
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    return [IdleProbe(name=NAME, probe=partial(probe, mark)) for mark in _marks(config)]


def probe(mark: ReservationMark, _own: frozenset[int]) -> Idleness:
    """BUSY while another program has the file."""
    return Idleness.BUSY if mark.is_anothers() else Idleness.IDLE


def _marks(config: Config) -> list[ReservationMark]:
    """The file, if the settings name one."""
    path = config.plugin(NAME, ReservationFileSettings).path
    who = f"muster on node {config.settings.node} of fleet {config.settings.fleet}"
    return [] if path is None else [ReservationMark(path, who)]
