"""The plugin `cloud`: the machine type by the metadata server of the cloud.

Only a machine that belongs to a cloud by its firmware asks. Other machines never wait for a server that is not there.
"""

from collections.abc import Iterator
from pathlib import Path

import structlog

from muster import Config, MachineType, MachineTypeSource, hookimpl
from muster_plugins.machines.cloud.clouds import cloud_of
from muster_plugins.machines.cloud.metadata_server import ADDRESS, NoMetadata, ask_machine_type
from muster_plugins.shared import dmi

log = structlog.get_logger()

_known: dict[str, MachineType] = {}
"""The answer by cloud: a machine does not change its type while this process lives, so it asks once."""

_logged: set[str] = set()
"""The reasons that are in the log already: a server that never answers is asked every minute."""


@hookimpl
def muster_machine_types(config: Config) -> Iterator[MachineType]:
    yield from machine_types(dmi.SYSFS, ADDRESS)


def machine_types(root: Path, address: tuple[str, int]) -> Iterator[MachineType]:
    """The machine type by the metadata server at `address`; nothing outside of a cloud, or without an answer."""
    cloud = cloud_of(root)
    if cloud is None:
        return
    if cloud.name not in _known:
        try:
            name = ask_machine_type(cloud, address)
        except NoMetadata as reason:
            if str(reason) not in _logged:
                _logged.add(str(reason))
                log.warning("metadata_server_unanswered", cloud=cloud.name, why=str(reason))
            return
        _known[cloud.name] = MachineType(name=name, source=MachineTypeSource.CLOUD, said_by=cloud.name)
    yield _known[cloud.name]
