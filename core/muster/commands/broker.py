"""`muster broker`: what operators of the MQTT broker need."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from muster.commands.options import load_settings, options_of
from muster.terminal import say

if TYPE_CHECKING:
    from muster.config import Settings

app = typer.Typer(help="The MQTT broker.", no_args_is_help=True)


class BrokerKind(StrEnum):
    """The brokers whose access lists muster can write."""

    MOSQUITTO = "mosquitto"
    EMQX = "emqx"


KindArgument = Annotated[BrokerKind, typer.Argument(metavar="BROKER", help="mosquitto or emqx.")]


@app.command("acl")
@options_of(load_settings)
def acl(settings: "Settings", broker: KindArgument) -> None:
    """Print the access list of a broker for the fleet in the settings: each node has only its own topics."""
    from muster.broker_acl import emqx_acl, mosquitto_acl  # noqa: PLC0415 (see plugin.py)

    text = mosquitto_acl(settings.fleet) if broker is BrokerKind.MOSQUITTO else emqx_acl(settings.fleet)
    say(text.rstrip())
