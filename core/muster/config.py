"""Settings: a TOML file, then the environment (`MUSTER_…`, `__` between levels), then defaults.

An unknown key, a value of the wrong type or a missing file is an error that names the key, the problem and a valid
value. Each plugin owns the table `[plugins.<name>]` and declares its keys with a model.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    Secret,
    SecretBytes,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from muster.addresses import broker_urls, is_loopback, possible_host, split_address
from muster.agent_settings import AgentSettings
from muster.defaults import DATA_DIR, HTTP_LISTEN
from muster.errors import SettingsError
from muster.explain import explain
from muster.home_path import HomePath
from muster.model import MOST_DEVICES, Name, Seconds
from muster.quarantine_settings import QuarantineSettings
from muster.section import Section
from muster.settings_table import read_table
from muster.sweep_settings import SweepsSettings
from muster.topology_labels import TopologyLabels


class BrokerSettings(Section):
    """The MQTT broker. Without a `url`, the coordinator embeds one that listens on `listen`, on loopback only."""

    url: str | None = Field(
        None,
        description="mqtt://host[:port] or mqtts://host[:port], or several of one cluster, divided by commas; "
        "unset: embedded broker",
    )
    listen: str = Field("127.0.0.1:1883", description="Where the embedded broker listens (loopback only)")
    username: str | None = Field(None, description="User name at the broker")
    password_file: HomePath | None = Field(None, description="File that holds the password")
    ca_file: HomePath | None = Field(None, description="CA certificates to verify the broker's certificate with")
    cert_file: HomePath | None = Field(None, description="Client certificate")
    key_file: HomePath | None = Field(None, description="Key of the client certificate")

    @property
    def agent_url(self) -> str:
        """Where agents find the broker: `url`, else the embedded broker."""
        return self.url or f"mqtt://{self.listen}"

    @field_validator("url")
    @classmethod
    def _is_mqtt(cls, value: str | None) -> str | None:
        if value is None:
            return None
        for url in broker_urls(value):
            parts = urlsplit(url)
            if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or parts.port == 0:
                raise ValueError("must be mqtt://host[:port] or mqtts://host[:port]")
            if parts.username is not None:
                raise ValueError("must not contain a user: set broker.username and broker.password_file")
            possible_host(parts.hostname)
        return value

    @field_validator("listen")
    @classmethod
    def _is_loopback(cls, value: str) -> str:
        if not is_loopback(value):
            raise ValueError("the embedded broker serves this host only; run Mosquitto and set broker.url for others")
        return value


class HttpSettings(Section):
    """The coordinator's HTTP API."""

    listen: str = Field(HTTP_LISTEN, description="host:port of the API; other than loopback needs a token")
    token_file: HomePath | None = Field(None, description="File with the token that may read and change everything")
    read_token_file: HomePath | None = Field(None, description="File with a second token, which may only read")
    report_token_file: HomePath | None = Field(
        None, description="File with a third token, which may read and send acceptance reports; for nodes and jobs"
    )
    trusted_proxies: tuple[str, ...] = Field(
        (), description="Networks of proxies that say in X-Muster-User and X-Muster-Role who has logged in"
    )
    trust_loopback: bool = Field(
        False, description="true: without a token_file, every local user may change everything"
    )

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            try:
                ip_network(network)
            except ValueError:
                raise ValueError(f"{network!r} is no network, for example 10.1.0.0/16 or 10.1.2.3") from None
        return value

    @model_validator(mode="after")
    def _has_a_token_for_roles(self) -> Self:
        for name in ("read_token_file", "report_token_file", "trusted_proxies"):
            if self.token_file is None and getattr(self, name):
                raise ValueError(f"{name} has no effect while every local user may read: set http.token_file, too")
        return self

    @model_validator(mode="after")
    def _has_a_token_beyond_loopback(self) -> Self:
        if self.token_file is None and not is_loopback(self.listen):
            raise ValueError(f"listen = {self.listen!r} lets other hosts in, which needs a token: set http.token_file")
        return self


DATABASE_LOCK = "database"
"""The `leader.lock` of the database itself."""


class LeaderSettings(Section):
    """Several coordinators with one PostgreSQL database; one of them leads."""

    url: str | None = Field(
        None, description="URL at which the other coordinators reach this one's API; unset: by http.listen"
    )
    lock: str = Field(
        DATABASE_LOCK,
        min_length=1,
        description="What grants the lock of the leader: database, or a plugin that offers one, such as kubernetes",
    )


class StoreSettings(Section):
    """The coordinator's database."""

    url: str | None = Field(None, description="SQLAlchemy URL; unset: SQLite in data_dir")
    node_mb_per_day: float = Field(
        128.0,
        ge=1,
        le=1_000_000,
        description="MB stored for one node in a day; the rest waits in its agent's outbox",
    )
    max_gb: float = Field(
        16.0,
        gt=0,
        le=1_000_000,
        description="GB that the database may use; near it, the oldest detail is summarised early",
    )
    keep_full_days: float = Field(
        1.0,
        ge=0.25,
        le=36_500,
        description="Days that each run is kept that differs from an earlier one in numbers only; "
        "then five minutes are summarised",
    )
    keep_days: float = Field(
        30.0,
        ge=1,
        le=36_500,
        description="Days that other runs without findings are kept before each hour is summarised; "
        "also for nodes that have left",
    )
    keep_findings_days: float = Field(
        365.0,
        ge=1,
        le=36_500,
        description="Days that runs with findings are kept before that; also for stories, decisions, sweeps, "
        "and nodes that are silent, on hold or were out of service",
    )
    keep_summaries_days: float = Field(1825.0, ge=1, le=36_500, description="Days that summaries are kept")


class CheckSettings(Section):
    """The operator's settings for one check."""

    enabled: bool = Field(True, description="false: never runs in the background")
    interval_s: Seconds | None = Field(
        None, gt=0, description="Seconds between background runs; unset: the check's own"
    )
    timeout_s: Seconds | None = Field(None, gt=0, description="Deadline of one run in seconds; unset: the check's own")
    params: dict[str, JsonValue] = Field({}, description="Parameters of background runs")


class StepSettings(Section):
    """One check of a suite. `params` override the quick parameters."""

    section: Literal["ENV", "COMPUTE", "MEMORY", "TRAIN", "INFERENCE", "COLLECTIVE"] = Field(
        description="Section of the report"
    )
    check: str = Field(description="Name of the check")
    quick: bool = Field(False, description="true: use the check's quick parameters")
    params: dict[str, JsonValue] = Field({}, description="Parameters")


class SuiteSettings(Section):
    """A suite of `muster check run --suite`."""

    summary: str = Field("", description="Purpose of the suite")
    repeat_for_s: float | None = Field(None, gt=0, description="Repeat the steps until this many seconds have passed")
    steps: tuple[StepSettings, ...] = Field(min_length=1, description="Steps, in the order in which they run")


class LogSettings(Section):
    """Settings of the log on stderr."""

    format: Literal["auto", "json", "console"] = Field("auto", description="auto: console on a terminal, else json")
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level that is logged")


class PluginsSettings(BaseModel):
    """Disabled plugins; each further table belongs to the plugin of that name."""

    model_config = ConfigDict(frozen=True, extra="allow")

    disabled: tuple[str, ...] = Field((), description="Names of plugins that are not loaded")

    @property
    def sections(self) -> dict[str, Any]:
        """The tables in the settings, by plugin name."""
        return dict(self.__pydantic_extra__ or {})


def _host_name() -> str:
    return socket.gethostname().split(".")[0] or "node"


class Settings(Section):
    """All settings of all parts; each part reads its own."""

    fleet: Name = Field("default", description="Name of the fleet; fleets can share a broker")
    node: Name = Field(default_factory=_host_name, description="Name of this node; default: the host name")
    data_dir: HomePath = Field(Path(DATA_DIR), description="Directory for the outbox and the database")
    expected_gpus: int | None = Field(
        None, ge=0, le=MOST_DEVICES, description="Number of GPUs that this node must have; unset: any"
    )
    references_file: HomePath | None = Field(
        None, description="The operator's references for this machine (TOML); they override all others"
    )
    topology_file: HomePath | None = Field(
        None, description="Positions of nodes (TOML, or Slurm's topology.conf); overrides what agents report"
    )
    topology_labels: TopologyLabels = Field(
        TopologyLabels(), description="Labels with the positions of nodes; unset: those that muster knows"
    )
    broker: BrokerSettings = Field(BrokerSettings(), description="The MQTT broker")
    http: HttpSettings = Field(HttpSettings(), description="The coordinator's HTTP API")
    store: StoreSettings = Field(StoreSettings(), description="The coordinator's database")
    leader: LeaderSettings = Field(LeaderSettings(), description="Several coordinators; one of them leads")
    agent: AgentSettings = Field(AgentSettings(), description="The agent on a node")
    sweeps: SweepsSettings = Field(SweepsSettings(), description="Sweeps")
    quarantine: QuarantineSettings = Field(
        QuarantineSettings(), description="Draining nodes and returning them to service"
    )
    log: LogSettings = Field(LogSettings(), description="Logs")
    checks: dict[str, CheckSettings] = Field({}, description="By check name")
    suites: dict[str, SuiteSettings] = Field({}, description="By name, suites in addition to those of muster")
    plugins: PluginsSettings = Field(PluginsSettings(), description="Plugins and their own tables")


S = TypeVar("S", bound=BaseModel)


class Config:
    """The settings as plugins see them: the typed ones, and each plugin's own section on request."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._claimed: dict[str, BaseModel] = {}

    def plugin(self, name: str, model: type[S]) -> S:
        """The table `[plugins.name]` as `model`, a `Section`. Raises SettingsError if it does not fit."""
        known = self._claimed.get(name)
        if isinstance(known, model):
            return known
        table = self.settings.plugins.sections.get(name, {})
        section = _validated(model, table, prefix=("plugins", name))
        self._claimed[name] = section
        return section

    @property
    def claimed(self) -> dict[str, BaseModel]:
        """The sections that plugins asked for, by plugin name."""
        return dict(self._claimed)

    def secrets(self) -> frozenset[Any]:
        """The values that plugins' models mark as secret: those of fields such as `SecretStr`."""
        return frozenset(filter(None, _secrets_in(self._claimed)))

    def unclaimed(self) -> list[str]:
        """Sections that no plugin asked for."""
        return sorted(set(self.settings.plugins.sections) - set(self._claimed))


def _secrets_in(value: Any) -> Iterator[Any]:
    match value:
        case Secret() | SecretStr():
            yield value.get_secret_value()
        case SecretBytes():
            yield value.get_secret_value().decode(errors="replace")
        case BaseModel():
            for _, item in value:
                yield from _secrets_in(item)
        case Mapping():
            for item in value.values():
                yield from _secrets_in(item)
        case list() | tuple() | set() | frozenset():
            for item in value:
                yield from _secrets_in(item)


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings in the file at `path`, if any, overlaid by `environment`. Raises SettingsError if they are wrong."""
    return validated_settings(read_table(path, environment))


def validated_settings(table: Mapping[str, Any]) -> Settings:
    """The settings for a table of `read_table`. Raises SettingsError if they are wrong."""
    return _validated(Settings, table, prefix=())


def _validated(model: type[S], table: Any, prefix: tuple[str, ...]) -> S:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise SettingsError("\n".join(explain(model, error, prefix))) from None
