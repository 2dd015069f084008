"""The settings of the plugin `kubernetes`."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from muster import Section
from muster.home_path import HomePath
from muster_plugins.schedulers.kubernetes.taints import KEY, VALUE, Taint, parse_taint

_API = re.compile(r"https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/?")
_PAIR = re.compile(rf"{KEY}={VALUE}")
_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_EFFECTS = ("NoSchedule", "PreferNoSchedule")

_REQUESTS_PER_S = 200.0
"""The rate of Karpenter, which writes to as many nodes: KUBE_CLIENT_QPS in its pkg/operator/options/options.go."""

_LEAST_REQUESTS_PER_S = 20.0
"""With fewer, four requests for each of 32 nodes would take longer than a transition's ten seconds."""


def _evicts_nobody(text: str) -> str:
    if text and parse_taint(text).effect not in _EFFECTS:
        raise ValueError(f"must have one of the effects {' and '.join(_EFFECTS)}, because others evict pods")
    return text


def _is_key(text: str) -> str:
    if not re.fullmatch(KEY, text):
        raise ValueError("must be a key in the form of Kubernetes, for example example.com/name")
    return text


def _is_pair(text: str) -> str:
    if not _PAIR.fullmatch(text):
        raise ValueError("must be key=value, for example example.com/name=true")
    return text


def _is_a_problem_of_others(kind: str) -> str:
    if kind.startswith("Muster") or kind == "Ready":
        raise ValueError("must be a condition of another program that is True while there is a problem")
    return kind


ConditionType = Annotated[str, AfterValidator(_is_a_problem_of_others)]
WantedConditions = dict[ConditionType, Literal["WARNING", "ERROR"]]
"""By type of the condition, the severity of its finding."""

TaintText = Annotated[str, AfterValidator(_evicts_nobody)]
LabelKey = Annotated[str, AfterValidator(_is_key)]
LabelPair = Annotated[str, AfterValidator(_is_pair)]


class KubernetesActorSettings(Section):
    """The table `[plugins.kubernetes.actor]`: what the coordinator does to nodes."""

    enabled: bool = Field(False, description="true: nodes that are out of service are cordoned in Kubernetes")
    kubeconfig: HomePath | None = Field(
        None, description="Kubeconfig for the API server; unset: the service account of the coordinator's pod"
    )
    context: str | None = Field(None, min_length=1, description="Context of the kubeconfig; unset: its current one")
    timeout_s: float = Field(3.0, gt=0, le=10, description="Deadline of each request in seconds")
    requests_per_s: float = Field(
        _REQUESTS_PER_S,
        ge=_LEAST_REQUESTS_PER_S,
        description="Requests to the API server in a second; those that drain a node go first and do not wait",
    )
    taint: TaintText = Field(
        "muster.dev/quarantine:NoSchedule",
        description="Taint of nodes that are out of service, as kubectl writes it: key[=value]:effect; empty: none",
    )
    startup_taint: LabelKey = Field(
        "muster.dev/accepting",
        description="Key of the taint that new nodes start with; removed when a node is accepted",
    )
    component_conditions: bool = Field(
        False,
        description="true: besides MusterHealthy, a condition by component, such as MusterGpuProblem",
    )
    ordinary_taints: tuple[LabelKey, ...] = Field(
        ("nvidia.com/gpu", "node-role.kubernetes.io/control-plane"),
        description="Keys of others' taints that do not make a node count as away; taints of most GPU nodes never do",
    )
    opt_out: LabelPair = Field("muster.dev/opt-out=true", description="Label of nodes that muster must not change")
    drain_hint: LabelPair | None = Field(
        None,
        description="Annotation key=value that tells other programs to drain the node; muster evicts no pods",
    )
    prefix: str = Field(
        "muster.dev",
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
        description="Prefix of the keys of labels and annotations",
    )

    @model_validator(mode="after")
    def _has_a_kubeconfig_for_the_context(self) -> Self:
        if self.context is not None and self.kubeconfig is None:
            raise ValueError("context belongs to a kubeconfig: set kubeconfig, too")
        return self

    @property
    def quarantine_taint(self) -> Taint | None:
        """The taint for nodes that are out of service; None if they get none."""
        return parse_taint(self.taint) if self.taint else None

    @property
    def mark_key(self) -> str:
        """Key of the annotation that marks our cordon and gives its reason."""
        return f"{self.prefix}/quarantine"

    @property
    def state_key(self) -> str:
        """Key of the label that holds the service state."""
        return f"{self.prefix}/service-state"


class KubernetesLeaseSettings(Section):
    """The table `[plugins.kubernetes.lease]`: the Lease that the leader holds, with `leader.lock = "kubernetes"`."""

    namespace: str = Field("muster", pattern=_LABEL, description="Its namespace")
    name: str = Field("muster-coordinator", pattern=_LABEL, description="Its name; each fleet needs its own")


class KubernetesSettings(Section):
    """The table `[plugins.kubernetes]`. A pod gets its own names from the downward API, through the environment."""

    enabled: bool = Field(False, description="true: this node is busy while a pod has some of its GPUs")
    node: str | None = Field(
        None,
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        description="The node's name in Kubernetes (spec.nodeName); unset: its name in muster",
    )
    pod_uid: str | None = Field(
        None, description="UID of the agent's own pod, which must exist and does not count as work"
    )
    gpu_resources: tuple[str, ...] = Field(
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
        min_length=1,
        description="Resource names of GPUs; * matches any text",
    )
    api: str | None = Field(None, description="https://host[:port] of the API server; unset: that of the pod's cluster")
    service_account: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount"), description="Directory with token and ca.crt"
    )
    interval_s: float = Field(
        0.0, ge=0, le=60, description="Seconds between two probes while a run has the node; 0: probe every time"
    )
    conditions: WantedConditions = Field(
        {}, description="Conditions of others on this node to report as findings, by type, each as WARNING or ERROR"
    )
    reserve: bool = Field(False, description="true: taint this node during sweeps and requested runs")
    actor: KubernetesActorSettings = KubernetesActorSettings()
    lease: KubernetesLeaseSettings = KubernetesLeaseSettings()

    @field_validator("api")
    @classmethod
    def _is_https(cls, value: str | None) -> str | None:
        if value is not None and not (_API.fullmatch(value) and urlsplit(value).port != 0):
            raise ValueError("must be https://host[:port], because anyone could read the token over http")
        return value
