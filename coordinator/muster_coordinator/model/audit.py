"""The audit log: one entry for every change that a person or a program has made through the API or the pages."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from muster.model import Data, Instant, Json
from muster_coordinator.model.events import FleetCommand


class Credential(StrEnum):
    """What a request has shown to be allowed what it wants."""

    TOKEN = "token"
    SESSION = "session"
    PROXY = "proxy"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Requester:
    """Who requests a change, and from where.

    `name` is empty if it is not known. `address` is the other end of the connection; `forwarded_for` is what the
    request says about addresses before that, which anybody may write unless a proxy or another coordinator is there.
    """

    name: str
    credential: Credential
    address: str | None = None
    forwarded_for: str | None = None


class AuditEntry(Data):
    """One change: who made it, when, from where, what it was, and why.

    - `action`: the name of the API's operation, such as `hold_node`, or `lead` when a coordinator begins to lead
    - `subject`: what was changed: a node, a sweep, a reference, a baseline
    - `by`: the name of the person or program, null if it is not known. If the `credential` is `proxy`, they have logged
      in under this name; otherwise it is what they called themselves
    - `address`: the other end of the connection; `forwarded_for`: where the request says that it comes from before that
    - `details`: the rest of the request
    """

    id: str
    at: Instant
    action: str
    subject: str | None = None
    by: str | None = None
    credential: Credential = Credential.NONE
    address: str | None = None
    forwarded_for: str | None = None
    reason: str | None = None
    details: Json = Field(default={})


@dataclass(frozen=True, slots=True)
class AppendAudit:
    """Append an entry to the audit log."""

    entry: AuditEntry


StoredCommand = FleetCommand | AppendAudit
"""What a batch of the pipeline holds: the commands of the fleet, and an entry before those of a person's request."""
