"""`muster broker`: what operators of the MQTT broker need."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.commands.options import JsonOption, load_settings, options_of
from muster.terminal import say, say_json

if TYPE_CHECKING:
    from muster.broker_check.connection import Account
    from muster.config import BrokerSettings, Settings
    from muster.doctor.setup_finding import SetupFinding

app = typer.Typer(help="The MQTT broker.", no_args_is_help=True)


class BrokerKind(StrEnum):
    """The brokers whose access lists muster can write."""

    MOSQUITTO = "mosquitto"
    EMQX = "emqx"
    RABBITMQ = "rabbitmq"


KindArgument = Annotated[BrokerKind, typer.Argument(metavar="BROKER", help="mosquitto, emqx or rabbitmq.")]
NodesArgument = Annotated[list[str] | None, typer.Argument(metavar="NODE", help="For rabbitmq: the nodes.")]


@app.command("acl")
@options_of(load_settings)
def acl(settings: "Settings", broker: KindArgument, nodes: NodesArgument = None) -> None:
    """Print the access list of a broker for the fleet in the settings: each node has only its own topics.

    RabbitMQ has no patterns that are safe for every name, so it gets rows for each NODE.
    Import them with `rabbitmqctl import_definitions`, once the accounts are there.
    """
    from muster.broker_acl import emqx_acl, mosquitto_acl, rabbitmq_definitions  # noqa: PLC0415 (see plugin.py)

    if (broker is BrokerKind.RABBITMQ) is not bool(nodes):
        raise typer.BadParameter("give the names of nodes for rabbitmq, and for no other broker", param_hint="NODE")
    match broker:
        case BrokerKind.MOSQUITTO:
            text = mosquitto_acl(settings.fleet)
        case BrokerKind.EMQX:
            text = emqx_acl(settings.fleet)
        case BrokerKind.RABBITMQ:
            text = rabbitmq_definitions(settings.fleet, nodes or ())
    say(text.rstrip())


UrlArgument = Annotated[
    str | None,
    typer.Argument(metavar="URL", help="mqtt://host[:port] or mqtts://host[:port]; default: one of broker.url."),
]
NodeOption = Annotated[str | None, typer.Option("--node", metavar="NODE", help="Try the rights of this node, too.")]
NodePasswordOption = Annotated[
    Path | None, typer.Option("--node-password-file", metavar="FILE", help="Password of the account NODE.")
]
NodeCertOption = Annotated[Path | None, typer.Option("--node-cert", metavar="FILE", help="Certificate of the node.")]
NodeKeyOption = Annotated[Path | None, typer.Option("--node-key", metavar="FILE", help="Key of that certificate.")]


@app.command("check")
@options_of(load_settings)
def check(
    settings: "Settings",
    broker_url: UrlArgument = None,
    *,
    node: NodeOption = None,
    node_password_file: NodePasswordOption = None,
    node_cert: NodeCertOption = None,
    node_key: NodeKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try whether a broker does what muster needs, with the account of the coordinator in the settings.

    Stop the coordinator first, and the agent of NODE: a broker may let an account in only once.
    Nothing is left at the broker.

    Exit codes: 0 if all is well, 1 for WARN, 2 for FAIL.
    """
    import asyncio  # noqa: PLC0415 (see plugin.py)

    from muster.broker_check.connection import Account  # noqa: PLC0415
    from muster.model import EXIT_CODES, worst  # noqa: PLC0415
    from muster.mqtt import addresses  # noqa: PLC0415
    from muster.wire.topics import client_id  # noqa: PLC0415

    broker = settings.broker if broker_url is None else _at(settings.broker, broker_url)
    if node is None and (node_password_file or node_cert):
        raise typer.BadParameter("say which node this account belongs to", param_hint="--node")
    if node is not None and broker.cert_file is not None and not (node_password_file or node_cert):
        raise typer.BadParameter(
            f"missing, because broker.cert_file is set: name the certificate of {node}, and its key with --node-key",
            param_hint="--node-cert",
        )
    url = next(addresses(broker.agent_url))
    coordinator = Account(broker, url, settings.fleet)
    of_node = None
    if node is not None:
        account = _account_of(node, node_password_file, node_cert, node_key)
        identifier = client_id(settings.fleet, node)
        of_node = Account(broker.model_copy(update=account), url, settings.fleet, identifier=identifier)
    outcomes = asyncio.run(_tried(coordinator, of_node, node or "", as_json))
    if as_json:
        say_json([outcome._asdict() for outcome in outcomes])
    raise typer.Exit(EXIT_CODES[worst([outcome.verdict for outcome in outcomes])])


def _at(broker: "BrokerSettings", url: str) -> "BrokerSettings":
    """The same settings for another broker."""
    from pydantic import ValidationError  # noqa: PLC0415 (see plugin.py)

    try:
        return broker.model_validate(broker.model_dump() | {"url": url})
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"].removeprefix("Value error, "), param_hint="URL") from None


def _account_of(node: str, password: Path | None, cert: Path | None, key: Path | None) -> dict[str, object]:
    username = None if password is None else node
    return {"username": username, "password_file": password, "cert_file": cert, "key_file": key}


async def _tried(coordinator: "Account", node: "Account | None", name: str, silent: bool) -> "list[SetupFinding]":
    """The outcomes; unless `silent`, each is printed as soon as it is known."""
    import asyncio  # noqa: PLC0415

    from muster.broker_check.trial import tried  # noqa: PLC0415

    # aiomqtt forgets what waits for an answer where a broker ends the connection, and asyncio would print each.
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    outcomes = []
    async for outcome in tried(coordinator, node, name):
        outcomes.append(outcome)
        if not silent:
            say(f"{outcome.verdict:<9}{outcome.check}: {outcome.detail}")
    return outcomes
