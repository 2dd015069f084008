"""The plugin `reservation_file`: for schedulers that a prolog or a script keeps off a node while a file is there."""

from collections.abc import Iterable

from pydantic import Field

from muster import Config, Reservation, Section, hookimpl
from muster.config import HomePath
from muster_plugins.reservation_file.mark import Mark

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
    path = config.plugin(NAME, ReservationFileSettings).path
    if path is None:
        return []
    mark = Mark(path, f"muster on node {config.settings.node} of fleet {config.settings.fleet}")
    return [Reservation(name=NAME, reserve=mark.make, release=mark.remove)]
