"""Decides for which node a token may get a certificate, from the API server's review of the token. Pure."""

import re

from pydantic import BaseModel, ValidationError

from muster.model import Json

AUDIENCE = "muster-signer"
"""The audience of the tokens. The signer refuses tokens for the API server, which every pod may have."""

ACCOUNT = "system:serviceaccount:muster:muster-agent"
"""The service account whose pods may get a certificate."""

NODE_KEY = "authentication.kubernetes.io/node-name"
"""The key under which the API server names the node of a token's pod, since Kubernetes 1.30."""

RESERVED = frozenset({"coordinator"})
"""Accounts at the broker that are not for nodes."""

_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""A valid node name in Kubernetes: a DNS subdomain, which is safe as a level of a topic."""


class NotEntitled(Exception):
    """The applicant gets no certificate; the text says why."""


class _User(BaseModel):
    username: str = ""
    extra: dict[str, tuple[str, ...]] = {}


class _ReviewStatus(BaseModel):
    authenticated: bool = False
    audiences: tuple[str, ...] = ()
    user: _User = _User()


class _TokenReview(BaseModel):
    status: _ReviewStatus


def review_of(token: str) -> Json:
    """The TokenReview that asks the API server about a token."""
    spec: Json = {"token": token, "audiences": [AUDIENCE]}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}


def node_of(review: bytes) -> str:
    """The node of a reviewed token; NotEntitled if there is none."""
    try:
        status = _TokenReview.model_validate_json(review).status
    except ValidationError:
        raise NotEntitled("the API server's answer is no TokenReview") from None
    if not status.authenticated or AUDIENCE not in status.audiences:
        raise NotEntitled(f"the token is not valid, or not for the audience {AUDIENCE}")
    if status.user.username != ACCOUNT:
        raise NotEntitled(f"{status.user.username} is not {ACCOUNT}")
    match status.user.extra.get(NODE_KEY, ()):
        case [node] if _NODE.fullmatch(node) and node not in RESERVED:
            return node
        case [node]:
            raise NotEntitled(f"{node!r} cannot be the name of a node at the broker")
    raise NotEntitled("the token names no node: it is bound to no pod, or Kubernetes is older than 1.30")
