"""Who may do what: users with tokens, and the rules of the ClusterRoles and Roles that they were given."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.kubernetes_standin.resources import Resource
from benchmarks.kubernetes_standin.statuses import Refused, forbidden, unauthorized

Role = Mapping[str, Any]
"""A ClusterRole or Role as in a manifest."""

CLUSTER_ADMIN: Role = {
    "kind": "ClusterRole",
    "metadata": {"name": "cluster-admin"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}

API_SERVER = "https://kubernetes.default.svc"
"""The audience of tokens for the server itself."""

BASIC_USER: Role = {
    "kind": "ClusterRole",
    "metadata": {"name": "system:basic-user"},
    "rules": [{"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["create"]}],
}
"""What Kubernetes lets everybody do who has a token."""


@dataclass(frozen=True)
class Attempt:
    """What somebody wants to do, in the words of RBAC; `resource` is `nodes/status` for a subresource."""

    verb: str
    group: str
    resource: str
    namespace: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        scope = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'cannot {self.verb} resource "{self.resource}" in API group "{self.group}" {scope}'


def new_token() -> str:
    """A bearer token that nobody guesses."""
    return secrets.token_urlsafe(24)


@dataclass
class User:
    """Somebody with roles, who has proved it with the token."""

    name: str
    roles: list[Role]
    token: str = field(default_factory=new_token, repr=False)

    def may(self, attempt: Attempt) -> bool:
        return any(
            _allows(rule, attempt)
            for role in self.roles
            if role["kind"] == "ClusterRole" or role["metadata"]["namespace"] == attempt.namespace
            for rule in role["rules"]
        )


@dataclass(frozen=True)
class PodToken:
    """A token that a kubelet has got for a pod on its node; it is valid for one audience."""

    user: str
    node: str
    pod: str
    audience: str
    token: str = field(default_factory=new_token, repr=False)

    @property
    def extra(self) -> dict[str, list[str]]:
        """What the server says about the bearer, since Kubernetes 1.30."""
        return {
            "authentication.kubernetes.io/node-name": [self.node],
            "authentication.kubernetes.io/pod-name": [self.pod],
        }


ANONYMOUS = User("system:anonymous", [])
"""Whoever does not say who they are: they may ask for the version, and for nothing else."""


@dataclass
class Users:
    """Everybody whom the server knows."""

    by_name: dict[str, User] = field(default_factory=dict)
    pod_tokens: list[PodToken] = field(default_factory=list)

    def add(self, name: str, roles: Iterable[Role]) -> User:
        user = self.by_name[name] = User(name, [BASIC_USER, *roles])
        return user

    def reviewed(self, token: str, audiences: list[str]) -> dict[str, Any]:
        """The status of a TokenReview. A user's own token has the audience `API_SERVER`."""
        wanted = audiences or [API_SERVER]
        for user in self.by_name.values():
            if user.token == token:
                return _review(user.name, {}, API_SERVER, wanted)
        for bound in self.pod_tokens:
            if bound.token == token:
                return _review(bound.user, bound.extra, bound.audience, wanted)
        return {"user": {}, "error": "[invalid bearer token]"}

    def authenticated(self, authorization: str | None) -> User:
        """The user with the token of an Authorization header, or Refused with 401; nobody who sends none."""
        if authorization is None:
            return ANONYMOUS
        kind, _, token = authorization.partition(" ")
        for user in self.by_name.values():
            if kind == "Bearer" and user.token == token:
                return user
        raise unauthorized()


def _review(name: str, extra: Mapping[str, list[str]], audience: str, wanted: list[str]) -> dict[str, Any]:
    if audience not in wanted:
        return {"user": {}, "error": f'token audiences ["{audience}"] is invalid for the target audiences {wanted}'}
    more = {"extra": dict(extra)} if extra else {}
    return {"authenticated": True, "user": {"username": name, **more}, "audiences": [audience]}


def denied(user: User, attempt: Attempt, resource: Resource) -> Refused:
    """What the server answers whom it does not let."""
    return forbidden(resource, attempt.name, f'User "{user.name}" {attempt}')


def _allows(rule: Mapping[str, list[str]], attempt: Attempt) -> bool:
    names = rule.get("resourceNames")
    _, slash, subresource = attempt.resource.partition("/")
    return (
        _matches(rule["verbs"], attempt.verb)
        and _matches(rule["apiGroups"], attempt.group)
        and (_matches(rule["resources"], attempt.resource) or bool(slash and f"*/{subresource}" in rule["resources"]))
        and (not names or attempt.name in names)
    )


def _matches(listed: list[str], wanted: str) -> bool:
    return "*" in listed or wanted in listed
