"""The fleet in columns, as the API serves it to viewers: one list for each field, with an item for each node.

A name that many nodes share stands once, in `ColumnNames`, and the column has its index there. Ten thousand nodes with
the names of cloud instances have 0.8 MB as JSON and less than 100 KB compressed, most of it their names.
"""

from typing import Literal

from muster.model import Data, Health, Instant, ServiceState, Severity


class PlaceColumns(Data):
    """The places of nodes, level by level; null where a level is unknown.

    The physical host is left out: nearly every node has one of its own, under a name as long as a hash.
    """

    block: tuple[str | None, ...]
    rack: tuple[str | None, ...]
    leaf: tuple[str | None, ...]


class ColumnNames(Data):
    """The names to which the columns have indexes."""

    health: tuple[Health, ...] = tuple(Health)
    service: tuple[ServiceState, ...] = tuple(ServiceState)
    severity: tuple[Severity, ...] = tuple(Severity)
    place: PlaceColumns
    worst: tuple[str, ...]
    model: tuple[str, ...]


class NodeColumns(Data):
    """One list for each field, with an item for each node. In a snapshot the nodes come by place, then by name.

    - `health`, `service`, `place`, `worst`, `severity`, `model`: indexes into the lists of `ColumnNames`
    - `lost`, `left`, `dry_run`: 1 or 0, as those of a node
    - `worst`: the code of the worst finding, with the number of an XID; `severity`: its severity; null without findings
    - `findings`: the number of findings
    - `model`, `devices`: the model and the number of the devices; null without devices, and the first of several models
    - `changed_s`: how many seconds before `at` the rest of the row changed, above an hour rounded to two digits; null
      if that was before the coordinator started and neither a finding nor silence tells when
    """

    name: tuple[str, ...]
    health: tuple[int, ...]
    service: tuple[int, ...]
    lost: tuple[int, ...]
    left: tuple[int, ...]
    dry_run: tuple[int, ...]
    place: tuple[int, ...]
    worst: tuple[int | None, ...]
    severity: tuple[int | None, ...]
    findings: tuple[int, ...]
    model: tuple[int | None, ...]
    devices: tuple[int, ...]
    changed_s: tuple[int | None, ...]


class FleetNumbers(Data):
    """Numbers about the fleet as a whole, and what does not work.

    - `nodes`, `health`, `service`, `lost`: as in the view of the fleet
    - `away`, `limit`: nodes that are out of service, and that may be; `held`: nodes that wait for that
    - `frozen`: mass events that keep nodes in service; `alarms`: alarms that stand
    - `catching_up`: nodes that still deliver older runs; `waiting_runs`: runs in all outboxes
    - `sweeps`: running sweeps; `sweeps_begun`: those that this coordinator has begun, so that one that has ended since
      is noticed; `sweeps_ended`: those whose end it has stored, so that lists have them
    - `is_connected`: whether the broker is; `is_overloaded`: whether the coordinator is
    - `failing_actors`: actors with a problem; `unheard`: nodes that are kept out and whose agents have not reported
    """

    nodes: int
    health: dict[Health, int]
    service: dict[ServiceState, int]
    lost: int
    mode: Literal["observe", "dry-run", "enforce"]
    away: int
    limit: int
    held: int
    frozen: int
    alarms: int
    catching_up: int
    waiting_runs: int
    sweeps: int
    sweeps_begun: int
    sweeps_ended: int
    is_connected: bool
    is_overloaded: bool
    failing_actors: tuple[str, ...]
    unheard: int


class FleetSnapshot(Data):
    """The whole fleet at version `version` of the coordinator with this `epoch`.

    It has had this version since `at`, by the coordinator's clock.
    """

    epoch: int
    version: int
    at: Instant
    fleet: FleetNumbers
    names: ColumnNames
    nodes: NodeColumns


class FleetChange(FleetSnapshot):
    """The nodes that have changed after version `since`, each as it is at `version`; `gone` were forgotten."""

    since: int
    gone: tuple[str, ...]


class SnapshotNeeded(Data):
    """What changed since the viewer's version is not known any more: it needs a snapshot, of `version` or later."""

    epoch: int
    version: int
