"""The plugin `kubernetes`: nodes that Kubernetes schedules."""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from muster import Config, IdleProbe, Section, hookimpl

NAME = "kubernetes"

_API = re.compile(r"https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/?")


class KubernetesSettings(Section):
    """The table `[plugins.kubernetes]`. A pod's own names come from the downward API, through the environment."""

    enabled: bool = Field(False, description="true: this node is busy while a pod has GPUs of it")
    node: str | None = Field(
        None,
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        description="The node's name in Kubernetes (spec.nodeName); unset: its name in muster",
    )
    pod_uid: str | None = Field(
        None, description="The agent's own pod (metadata.uid): it does not count, and must be there"
    )
    gpu_resources: tuple[str, ...] = Field(
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
        min_length=1,
        description="Resources that stand for GPUs; * stands for anything",
    )
    api: str | None = Field(
        None, description="https://host[:port] of the API server; unset: the one that pods are told"
    )
    service_account: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount"), description="Directory with token and ca.crt"
    )
    interval_s: float = Field(
        0.0, ge=0, le=60, description="While a run holds the node: seconds until it is asked again; 0: every time"
    )

    @field_validator("api")
    @classmethod
    def _is_https(cls, value: str | None) -> str | None:
        if value is not None and not (_API.fullmatch(value) and urlsplit(value).port != 0):
            raise ValueError("must be https://host[:port], as the token is not for others to read")
        return value


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, KubernetesSettings)


@hookimpl
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    settings = config.plugin(NAME, KubernetesSettings)
    if not settings.enabled:
        return []
    # Here, because it takes memory that only nodes in Kubernetes should spend.
    from muster_plugins.kubernetes.api import ApiServer  # noqa: PLC0415
    from muster_plugins.kubernetes.idle import probe  # noqa: PLC0415

    ask = partial(
        probe,
        ApiServer(settings.api, settings.service_account),
        settings.node or config.settings.node,
        settings.gpu_resources,
        settings.pod_uid,
    )
    return [IdleProbe(name=NAME, probe=ask, interval_s=settings.interval_s)]
