"""The clouds that muster knows: how the firmware shows that a machine is theirs, and what to ask their server.

Sources of the marks and requests:
- Google Cloud: https://cloud.google.com/compute/docs/instances/detect-compute-engine and
  https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys
- AWS: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html and
  https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html (version 2)
- Azure: https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service; the asset tag is in cloud-init
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
    """

    name: str
    field: str
    mark: str
    machine_type: MetadataRequest
    session: MetadataRequest | None = None
    session_header: str = ""


CLOUDS = (
    Cloud(
        name="Google Cloud",
        field="product_name",
        mark="Google Compute Engine",
        machine_type=MetadataRequest(
            path="/computeMetadata/v1/instance/machine-type", headers={"Metadata-Flavor": "Google"}
        ),
    ),
    Cloud(
        name="AWS",
        field="sys_vendor",
        mark="Amazon EC2",
        machine_type=MetadataRequest(path="/latest/meta-data/instance-type"),
        session=MetadataRequest(
            method="PUT", path="/latest/api/token", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        ),
        session_header="X-aws-ec2-metadata-token",
    ),
    Cloud(
        name="Azure",
        field="chassis_asset_tag",
        mark="7783-7084-3265-9085-8269-3286-77",
        machine_type=MetadataRequest(
            path="/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text", headers={"Metadata": "true"}
        ),
    ),
)


def cloud_of(root: Path) -> Cloud | None:
    """The cloud to which this machine belongs, by the DMI fields below `root`; None for any other machine."""
    return next((cloud for cloud in CLOUDS if dmi.read_field(root, cloud.field).startswith(cloud.mark)), None)
