"""The coordinator's API server and identity there: from a kubeconfig, or from its pod's service account."""

import re
from pathlib import Path

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_kube_config

from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes.api import ServiceAccount, Unanswered
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings
from muster_plugins.shared.error_words import in_words

_WHERE = "plugins.kubernetes.actor"


async def load_credentials(configuration: Configuration, settings: KubernetesSettings) -> None:
    """Fills in the client's configuration. Raises Unavailable with the problem."""
    actor = settings.actor
    if actor.kubeconfig is None:
        _of_the_pod(configuration, ServiceAccount(settings.api, settings.service_account))
    else:
        await _of_the_file(configuration, actor.kubeconfig, actor.context)


def _of_the_pod(configuration: Configuration, account: ServiceAccount) -> None:
    """The token is read for each request: the kubelet replaces it about once an hour."""

    def renew(configuration: Configuration) -> None:
        configuration.api_key["BearerToken"] = f"Bearer {account.token()}"

    try:
        host, port = account.address()
        account.tls()
        renew(configuration)
    except (Unanswered, OSError) as error:
        raise Unavailable(f"{in_words(error)}; outside of a cluster, set {_WHERE}.kubeconfig") from None
    configuration.host = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    configuration.ssl_ca_cert = str(account.authority_file)
    configuration.refresh_api_key_hook = renew


async def _of_the_file(configuration: Configuration, path: Path, context: str | None) -> None:
    _refuse_absent(path)
    try:
        await load_kube_config(str(path), context=context, client_configuration=configuration, persist_config=False)
    except Exception as error:  # the loader raises many kinds of error for a file that is no kubeconfig
        raise Unavailable(f"{_WHERE}.kubeconfig: cannot use {path}: {_without_entries(error)}") from None


def _refuse_absent(path: Path) -> None:
    """Raises an error if the file does not exist; the loader would ignore it."""
    if not path.is_file():
        raise Unavailable(f"{_WHERE}.kubeconfig: there is no file {path}")


def _without_entries(error: Exception) -> str:
    """The problem in one line. The loader quotes the whole entry in its error, which may hold a token."""
    return re.sub(r"\{.*\}", "{…}", " ".join(in_words(error).split()))
