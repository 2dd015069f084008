"""The settings of the plugin `webhook`: targets, their formats and their secrets.

A URL counts as a secret: with the URL of a Slack channel, anybody can write to the channel.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from muster import Section
from muster.addresses import LOOPBACK, possible_host
from muster.home_path import HomePath
from muster.model import ServiceState

if TYPE_CHECKING:
    from muster import Transition

NAME = "webhook"

_SECRET_OF_FORMAT = {"generic": "secret_file", "pagerduty": "routing_key_file"}


class WebhookTarget(Section):
    """A table `[plugins.webhook.targets.<name>]`."""

    url: SecretStr = Field(description="Full URL to post to: https://host[:port]/path")
    format: Literal["generic", "slack", "pagerduty", "alertmanager"] = Field(
        "generic", description="generic: signed JSON; otherwise the format of that service"
    )
    secret_file: HomePath | None = Field(
        None, description="generic: file with the signing secret, 24 to 64 bytes in base64"
    )
    routing_key_file: HomePath | None = Field(None, description="pagerduty: file with the integration key")
    token_file: HomePath | None = Field(None, description="File with a token to send as Authorization: Bearer")
    ca_file: HomePath | None = Field(
        None, description="CA certificates to verify the server with; unset: those that this host trusts"
    )
    states: tuple[ServiceState, ...] = Field(
        (ServiceState.HELD, ServiceState.CORDONED, ServiceState.IN_SERVICE),
        min_length=1,
        description="States that the target is notified of when a node reaches them",
    )
    alarms: bool | None = Field(
        None,
        description="true: notify it of alarms, too; unset: true, but false for the format generic",
    )
    plain_http: bool = Field(False, description="true: allow http:// to other hosts; anyone on the path can read it")
    timeout_s: float = Field(5.0, gt=0, le=9, description="Deadline of one post in seconds; no plugin has more than 10")

    @model_validator(mode="after")
    def _can_be_posted_to(self) -> Self:
        # This check is here and not at `url`, because pydantic's error for a field shows the field's value.
        parts = urlsplit(self.url.get_secret_value())
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.port == 0:
            raise ValueError("url must be https://host[:port]/path")
        if "@" in parts.netloc:
            raise ValueError("url must not contain a user: set token_file")
        possible_host(parts.hostname)
        if parts.scheme == "http" and parts.hostname not in LOOPBACK and not self.plain_http:
            raise ValueError(
                "url is http://, which anyone on the path can read: use https://, or set plain_http = true"
            )
        return self

    @model_validator(mode="after")
    def _has_the_secret_of_its_format(self) -> Self:
        for name, key in _SECRET_OF_FORMAT.items():
            given = getattr(self, key) is not None
            if given and self.format != name:
                raise ValueError(f"{key} is for format = {name!r} only")
            if self.format == name and not given:
                raise ValueError(f"format = {name!r} needs {key}")
        return self

    @property
    def takes_alarms(self) -> bool:
        """Whether the target is notified of alarms. A receiver of the generic format must know that form first."""
        return self.format != "generic" if self.alarms is None else self.alarms

    def wants(self, transition: "Transition") -> bool:
        """Whether the target is notified of the transition, by its `states`.

        A new node that is accepted counts only for targets whose `states` include ACCEPTING.
        """
        before, after = transition.before, transition.after
        accepted = before is ServiceState.ACCEPTING and after is ServiceState.IN_SERVICE
        return after in self.states and (not accepted or before in self.states)


class WebhookSettings(Section):
    """The table `[plugins.webhook]`."""

    muster_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s/]+(/[^\s]*)?$",
        description="The coordinator's URL for people, for links to its pages; unset: no links",
    )
    targets: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")], WebhookTarget] = Field(
        {}, description="Targets by name"
    )

    @model_validator(mode="before")
    @classmethod
    def _holds_tables(cls, table: Any) -> Any:
        # Here for the same reason: a value in place of a table may be a URL.
        targets = table.get("targets", {}) if isinstance(table, dict) else {}
        if not isinstance(targets, dict) or not all(isinstance(target, dict) for target in targets.values()):
            raise ValueError("targets must be tables, each with its own url")
        return table
