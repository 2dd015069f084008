"""The Lease of the leader at the API server: what it says, and how it is read and written."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field

from muster.model import Json
from muster_plugins.schedulers.kubernetes.api_error import Absent
from muster_plugins.schedulers.kubernetes.calls import CREATE_LEASE, PATCH_LEASE, READ_LEASE
from muster_plugins.schedulers.kubernetes.client import read_answer
from muster_plugins.schedulers.kubernetes.connection import Connection
from muster_plugins.schedulers.kubernetes.marks import FIELD_MANAGER
from muster_plugins.schedulers.kubernetes.patches import Form
from muster_plugins.schedulers.kubernetes.session import Question
from muster_plugins.schedulers.kubernetes.settings import KubernetesLeaseSettings

URL = "muster.dev/leader-url"
"""The annotation with the URL of the leader's API."""


class _Metadata(BaseModel):
    version: str = Field(alias="resourceVersion")
    annotations: dict[str, str] = {}


class _Spec(BaseModel):
    holder: str | None = Field(None, alias="holderIdentity")
    duration_s: int | None = Field(None, alias="leaseDurationSeconds")
    transitions: int | None = Field(None, alias="leaseTransitions")


class LeaderLease(BaseModel):
    """A version of the Lease. Its times are not read: clocks of hosts differ."""

    metadata: _Metadata
    spec: _Spec = _Spec()

    @property
    def url(self) -> str | None:
        """The URL of the leader's API."""
        return self.metadata.annotations.get(URL)


def held(holder: str, duration_s: int, transitions: int) -> Json:
    """The spec of a Lease that somebody holds from now on."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration_s,
        "leaseTransitions": transitions,
        "renewTime": now,
    }


FREE: Json = {"holderIdentity": None, "leaseDurationSeconds": 1}
"""The spec of a Lease that nobody holds. Its duration must be above 0."""


class LeaseClient:
    """Reads and writes one Lease. Raises ApiError, and Conflict if somebody has written it since it was read."""

    def __init__(self, connection: Connection, settings: KubernetesLeaseSettings) -> None:
        self._connection = connection
        self._settings = settings

    async def read(self) -> LeaderLease | None:
        """The Lease as it is; None if there is none yet."""
        try:
            return await self._ask(Question(call=READ_LEASE, **self._place))
        except Absent:
            return None

    async def create(self, url: str, spec: Json) -> LeaderLease:
        """Creates it."""
        metadata: Json = {"name": self._settings.name, "annotations": {URL: url}}
        query = {"fieldManager": FIELD_MANAGER}
        return await self._ask(
            Question(call=CREATE_LEASE, **self._place, query=query, body={**_KIND, "metadata": metadata, "spec": spec})
        )

    async def update(self, known: LeaderLease, url: str, spec: Json) -> LeaderLease:
        """Writes it, unless somebody has written it since it was `known`."""
        metadata: Json = {"resourceVersion": known.metadata.version, "annotations": {URL: url}}
        return await self._ask(
            Question(
                call=PATCH_LEASE,
                **self._place,
                query={"fieldManager": FIELD_MANAGER},
                body={**_KIND, "metadata": metadata, "spec": spec},
                form=Form.MERGE,
            )
        )

    async def close(self) -> None:
        await self._connection.close()

    @property
    def _place(self) -> dict[str, Any]:
        return {"name": self._settings.name, "namespace": self._settings.namespace}

    async def _ask(self, question: Question) -> LeaderLease:
        return read_answer(LeaderLease, question, await self._connection.ask(question))


_KIND: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
