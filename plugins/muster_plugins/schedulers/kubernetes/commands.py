"""`muster kubernetes`: certificates for agents in a cluster.

The help needs none of the imports inside the functions.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.commands.options import load_settings, options_of
from muster.errors import Unavailable
from muster.extras import missing_package

if TYPE_CHECKING:
    from muster.config import Settings

app = typer.Typer(help="Certificates for agents in Kubernetes.", no_args_is_help=True)

REVIEW_TIMEOUT_S = 5.0
"""Timeout for each of connecting, TLS and answering. Only an agent that enrols waits for it."""

# The manifests mount them here.
AUTHORITY = Path("/etc/muster/authority")
CA_FILE = AUTHORITY / "ca.crt"
TLS = Path("/etc/muster/tls")
TOKEN = Path("/var/run/secrets/muster/token")
SIGNER = "https://muster-signer.muster.svc:8443"
LISTEN = "0.0.0.0:8443"


@app.command()
@options_of(load_settings)
def enrol(
    settings: "Settings",
    signer: Annotated[str, typer.Option(metavar="URL", help="URL of the signer.")] = SIGNER,
    authority: Annotated[Path, typer.Option(metavar="FILE", help="The authority's certificate.")] = CA_FILE,
    token: Annotated[Path, typer.Option(metavar="FILE", help="The pod's token for the signer.")] = TOKEN,
    tls: Annotated[Path, typer.Option(metavar="DIR", help="Directory for ca.crt, tls.crt and tls.key.")] = TLS,
) -> None:
    """Get a certificate for the agent of this node, and renew it until stopped."""
    from muster import logs  # noqa: PLC0415 (see above)

    logs.configure(settings.log, component="enrol")
    try:
        from muster_plugins.schedulers.kubernetes.enrolment.enrolling import Enrolment, keep_enrolled, require_places  # noqa: PLC0415 (may not be installed)
    except ImportError as error:
        raise Unavailable(missing_package(error) or str(error)) from None
    enrolment = Enrolment(signer, authority, token, tls)
    require_places(enrolment)
    keep_enrolled(enrolment)


@app.command()
@options_of(load_settings)
def sign(
    settings: "Settings",
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the HTTPS server.")] = LISTEN,
    authority: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory with the authority's tls.crt and tls.key.")
    ] = AUTHORITY,
    tls: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory with the server's own tls.crt and tls.key.")
    ] = TLS,
) -> None:
    """Sign a certificate for each agent in the name of its node, until stopped."""
    import asyncio  # noqa: PLC0415 (see above)

    from muster import logs  # noqa: PLC0415 (see above)
    from muster.config import Config  # noqa: PLC0415 (see above)
    from muster_plugins.schedulers.kubernetes.api import ApiServer, ServiceAccount  # noqa: PLC0415 (see above)
    from muster_plugins.schedulers.kubernetes.plugin import NAME  # noqa: PLC0415 (see above)
    from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings  # noqa: PLC0415 (see above)

    logs.configure(settings.log, component="sign")
    try:
        from muster_plugins.schedulers.kubernetes.enrolment.authority import Authority  # noqa: PLC0415 (may not be installed)
        from muster_plugins.schedulers.kubernetes.enrolment.signer import Signer, serve, token_review  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable(missing_package(error) or str(error)) from None
    plugin = Config(settings).plugin(NAME, KubernetesSettings)
    server = ApiServer(ServiceAccount(plugin.api, plugin.service_account), REVIEW_TIMEOUT_S)
    asyncio.run(serve(Signer(Authority.read(authority), token_review(server)), listen, tls))
