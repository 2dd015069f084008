"""The environment for NCCL: a named profile, the values that the image ships, and the operator's settings.

Profiles are data, in `environment.toml`. Parameters, which may come over the network, only choose a profile;
values come from there, from a file of the image that is read and never executed, and from the settings.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from muster import Section
from muster.home_path import HomePath
from muster.model import Data
from muster.toml import shipped_table

ProfileName = Literal["nvlink", "net-forced", "gib-a4", "gib-a3u", "ib", "roce", "socket", "custom"]

REMOVED = "(removed)"

_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]

_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|MAGIC|(?<!P)KEY")
"""NCCL_SOCKET_MAGIC is made from the secret of a group. A PKEY, such as NCCL_IB_PKEY, is a partition of a fabric and no
secret.
"""

_SHOWN = ("NCCL_", "TORCH_NCCL_", "GLOO_")

_EXPORT = re.compile(r"export\s+(NCCL_[A-Z0-9_]+)=(.*)")

_OPENS, _CLOSES = re.compile(r"(if|case|for|while|until)\b|.*\{$"), re.compile(r"(fi|esac|done|\})(?![^\s;&|)])")

_MOST_SCRIPT_BYTES = 1 << 16


class Profile(Data):
    """One profile. `transport` is what NCCL should report; None if nothing is expected."""

    summary: str
    source: str
    transport: str | None = None
    environment: dict[str, str] = {}


class NcclSettings(Section):
    """The settings for NCCL, which each check that uses NCCL has in its own table."""

    profile: ProfileName = Field("custom", description="Environment profile; a run's parameters override it")
    environment: dict[_Variable, str] = Field({}, description="Variables that replace those of the profile")
    interface: str | None = Field(
        None, description="Network interface for profiles that need one; unset: found by route"
    )
    gib_script: HomePath = Field(
        Path("/usr/local/gib/scripts/set_nccl_env.sh"),
        description="Script with the image's own values for gIB; it is read, not executed",
    )


@cache
def profiles() -> Mapping[str, Profile]:
    """All profiles by name."""
    return TypeAdapter(dict[str, Profile]).validate_python(
        shipped_table("muster_plugins.shared.nccl", "environment.toml")
    )


def environment_for(name: ProfileName, settings: NcclSettings, interface: str | None) -> dict[str, str]:
    """The variables of a profile. `interface` leads to the other nodes; None if unknown."""
    interface = settings.interface or interface
    values = {
        variable: value.replace("{interface}", interface or "")
        for variable, value in profiles()[name].environment.items()
        if interface or "{interface}" not in value
    }
    if profiles()[name].transport == "NET/gIB":
        values |= _of_image(settings.gib_script)
    return values | settings.environment


def shown(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that concern NCCL, without secrets."""
    return {
        name: REMOVED if _SECRET.search(name) else value
        for name, value in sorted(environment.items())
        if name.startswith(_SHOWN)
    }


def _of_image(script: Path) -> dict[str, str]:
    """The values that an image ships; empty without such a file."""
    try:
        with script.open("rb") as file:
            text = file.read(_MOST_SCRIPT_BYTES).decode(errors="replace")
    except OSError:
        return {}
    return dict(plain_exports(text))


def plain_exports(script: str) -> Iterator[tuple[str, str]]:
    """NCCL's variables that a shell script always exports.

    Exports within a condition, a loop or a function are left out, and so are values that a shell would have to compute:
    that would require executing the script.
    """
    depth = 0
    for line in map(str.strip, script.splitlines()):
        if _CLOSES.match(line):
            depth -= 1
        elif _OPENS.match(line):
            depth += not line.endswith(("fi", "esac", "done", "}"))
        elif depth == 0 and (found := _EXPORT.match(line)) and (value := _plain(found[2])) is not None:
            yield found[1], value


def _plain(text: str) -> str | None:
    """The value of an assignment; None if it is not plain."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an unclosed quotation mark
        return None
    plain = len(words) == 1 and not set(text) & set("$`;&|<>()")
    return words[0] if plain else None
