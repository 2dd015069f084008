"""The clouds that muster knows: how the firmware shows that a machine is theirs, and what to ask their server.

Sources of the marks and requests:
- Google Cloud: https://cloud.google.com/compute/docs/instances/detect-compute-engine and
  https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys
- AWS: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html and
  https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html (version 2) and
  https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html (the categories)
- Azure: https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service and
  https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events; the asset tag is in cloud-init
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster_plugins.machines.cloud import notices, places
from muster_plugins.machines.cloud.answers import Answers
from muster_plugins.shared import dmi


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """A request to a metadata server."""

    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A cloud. Machines whose DMI `field` begins with `mark` are its own.

    If there is a request for a `session`, the answer goes into the header `session_header` of the other requests.
    `labels` makes labels from the answers to `place`, and `departure` says from those to `notices` why the machine
    leaves or restarts.
    """

    name: str
    field: str
    mark: str
    machine_type: MetadataRequest
    place: tuple[MetadataRequest, ...]
    labels: Callable[[Answers], dict[str, str]]
    notices: tuple[MetadataRequest, ...]
    departure: Callable[[Answers, float], str | None]
    session: MetadataRequest | None = None
    session_header: str = ""


def _google(key: str) -> MetadataRequest:
    return MetadataRequest(path=f"/computeMetadata/v1/instance/{key}", headers={"Metadata-Flavor": "Google"})


def _aws(category: str) -> MetadataRequest:
    return MetadataRequest(path=f"/latest/meta-data/{category}")


def _azure(path: str) -> MetadataRequest:
    return MetadataRequest(path=f"/metadata/{path}", headers={"Metadata": "true"})


def _azure_compute(key: str) -> MetadataRequest:
    return _azure(f"instance/compute/{key}?api-version=2021-02-01&format=text")


CLOUDS = (
    Cloud(
        name="Google Cloud",
        field="product_name",
        mark="Google Compute Engine",
        machine_type=_google("machine-type"),
        place=(_google("zone"), _google("attributes/physical_host")),
        labels=places.google_labels,
        notices=(_google("preempted"), _google("maintenance-event"), _google("upcoming-maintenance?alt=json")),
        departure=notices.google_departure,
    ),
    Cloud(
        name="AWS",
        field="sys_vendor",
        mark="Amazon EC2",
        machine_type=_aws("instance-type"),
        place=(_aws("placement/availability-zone"), _aws("placement/host-id")),
        labels=places.aws_labels,
        notices=(_aws("spot/instance-action"), _aws("events/maintenance/scheduled")),
        departure=notices.aws_departure,
        session=MetadataRequest(
            method="PUT", path="/latest/api/token", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        ),
        session_header="X-aws-ec2-metadata-token",
    ),
    Cloud(
        name="Azure",
        field="chassis_asset_tag",
        mark="7783-7084-3265-9085-8269-3286-77",
        machine_type=_azure_compute("vmSize"),
        place=(_azure_compute("location"), _azure_compute("zone")),
        labels=places.azure_labels,
        notices=(_azure_compute("name"), _azure("scheduledevents?api-version=2020-07-01")),
        departure=notices.azure_departure,
    ),
)


def cloud_of(root: Path) -> Cloud | None:
    """The cloud to which this machine belongs, by the DMI fields below `root`; None for any other machine."""
    return next((cloud for cloud in CLOUDS if dmi.read_field(root, cloud.field).startswith(cloud.mark)), None)
