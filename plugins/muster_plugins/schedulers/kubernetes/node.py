"""A node in the API: the fields that muster reads."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from muster_plugins.schedulers.kubernetes.taints import Taint


class _FromApi(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Fields(_FromApi):
    spec: dict[str, Any] = Field({}, alias="f:spec")


class FieldsOfManager(_FromApi):
    """The fields that one manager wrote last, with its name."""

    manager: str = "somebody"
    operation: str = "Update"
    time: str | None = None
    fields: _Fields = Field(_Fields(), alias="fieldsV1")


class Metadata(_FromApi):
    """The metadata of every object."""

    name: str
    uid: str
    version: str = Field(alias="resourceVersion")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deleted_at: str | None = Field(None, alias="deletionTimestamp")
    managed_fields: list[FieldsOfManager] = Field([], alias="managedFields")


class Spec(_FromApi):
    """The spec of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeCondition(_FromApi):
    """One condition of a node, and since when; `status` is True, False or Unknown."""

    type: str
    status: str
    message: str = ""
    since: str | None = Field(None, alias="lastTransitionTime")


class Status(_FromApi):
    """The status of a node."""

    conditions: list[NodeCondition] = []
    capacity: dict[str, str] = {}


class KubernetesNode(_FromApi):
    """A node."""

    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    def condition(self, type: str) -> NodeCondition | None:
        """The condition of this type, if there is one."""
        return next((condition for condition in self.status.conditions if condition.type == type), None)


class _ListMetadata(_FromApi):
    rest: str | None = Field(None, alias="continue")


class NodeList(_FromApi):
    """A page of a list of nodes."""

    metadata: _ListMetadata = _ListMetadata()
    items: list[KubernetesNode]

    @property
    def rest(self) -> str | None:
        """The token for the next page, if there is one."""
        return self.metadata.rest or None
