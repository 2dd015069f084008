"""What the operator says about a fleet. The file `answers.toml` keeps it for a later call."""

import re
import tomllib
from dataclasses import asdict, dataclass
from ipaddress import ip_address

from muster.broker_acl import COORDINATOR
from muster.errors import SettingsError
from muster.hostlist import expand
from muster.model import MOST_DEVICES
from muster.setup.fleet_kind import WITH_A_BROKER, FleetKind
from muster.toml import to_toml

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Safe as a topic, as a directory and as the common name of a certificate, which has at most 64 characters."""

HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
REGISTRY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?")

NAME_FORM = "use at most 64 letters, digits and ._-, and begin with a letter or digit"


@dataclass(frozen=True, slots=True)
class SetupAnswers:
    """A fleet as its files describe it. `host` has broker and coordinator; `registry` has the images.

    Raises SettingsError with the option that is wrong or missing.
    """

    kind: FleetKind
    fleet: str = "default"
    host: str | None = None
    expected_gpus: int | None = None
    registry: str | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.fleet):
            raise SettingsError(f"--fleet: {self.fleet!r} cannot name a fleet; {NAME_FORM}")
        if self.expected_gpus is not None and not 0 <= self.expected_gpus <= MOST_DEVICES:
            raise SettingsError(f"--expect-gpus: no node has {self.expected_gpus} GPUs; use 0 to {MOST_DEVICES}")
        self._require("host", self.kind in WITH_A_BROKER, "the name by which nodes reach broker and coordinator")
        self._require(
            "registry", self.kind is FleetKind.KUBERNETES, "where nodes get the images, e.g. registry.internal"
        )
        if self.host is not None and not is_host(self.host):
            raise SettingsError(f"--host: {self.host!r} is neither the name nor the address of a host")
        if self.registry is not None and not REGISTRY.fullmatch(self.registry):
            raise SettingsError(
                f"--registry: {self.registry!r} is no registry; use a form such as registry.internal/gpu"
            )

    def _require(self, name: str, is_needed: bool, meaning: str) -> None:
        given = getattr(self, name)
        if is_needed and given is None:
            raise SettingsError(f"--{name}: missing for {self.kind}; give {meaning}")
        if not is_needed and given is not None:
            raise SettingsError(f"--{name}: has no meaning for {self.kind}; leave it out")

    def as_toml(self) -> str:
        """The content of `answers.toml`."""
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return f"# What `muster init` was told. It reads this file when it is called again.\n{to_toml(told)}\n"


def answers_from_toml(text: str, place: str) -> SetupAnswers:
    """The answers in the text of `answers.toml`. Raises SettingsError if they are not there, or wrong."""
    try:
        told = tomllib.loads(text)
        return SetupAnswers(**{**told, "kind": FleetKind(told["kind"])})
    except (tomllib.TOMLDecodeError, TypeError, KeyError, ValueError) as error:
        raise SettingsError(
            f"{place}: cannot be understood: {error}; restore it, or name another --directory"
        ) from None


def is_host(text: str) -> bool:
    """Whether the text is a host name or an address, and so safe in a URL and in a certificate."""
    try:
        return "%" not in text and bool(ip_address(text))  # an address with a zone is good on one host only
    except ValueError:
        return HOST.fullmatch(text) is not None


def node_names(kind: FleetKind, text: str | None, option: str = "--nodes") -> list[str]:
    """The names in a list such as `gpu-[001-100],gpu-200`. Raises SettingsError with one that no node may have."""
    if text is None:
        return []
    if kind not in WITH_A_BROKER:
        raise SettingsError(f"{option}: has no meaning for {kind}, where no node is named in a file; leave it out")
    try:
        names = list(dict.fromkeys(expand(text)))
    except ValueError as error:
        raise SettingsError(f"{option}: {error}") from None
    for name in names:
        if not NAME.fullmatch(name):
            raise SettingsError(f"{option}: {name!r} cannot name a node; {NAME_FORM}")
        if name == COORDINATOR:
            raise SettingsError(f"{option}: {name!r} is the coordinator's account; give the node another name")
    return names
