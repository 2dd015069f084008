"""What a path of the API names, and what a request wants to do with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.kubernetes_standin.access import Attempt
from benchmarks.kubernetes_standin.resources import RESOURCES, Resource
from benchmarks.kubernetes_standin.statuses import no_such_resource, not_allowed

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)

_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Target:
    """An object of a resource or one of its subresources, or without a name all of them."""

    resource: Resource
    namespace: str
    name: str
    subresource: str | None

    @property
    def key(self) -> tuple[Resource, str, str]:
        return self.resource, self.namespace, self.name

    def attempt(self, verb: str) -> Attempt:
        """The verb on this target, in the words of RBAC."""
        subresource = f"/{self.subresource}" if self.subresource else ""
        plural = f"{self.resource.plural}{subresource}"
        return Attempt(verb, self.resource.group, plural, self.namespace or None, self.name or None)


def target_of(path: str) -> Target:
    """The target that a path names; Refused with 404 when there is no such thing here."""
    found = _PATH.fullmatch(path)
    resource = found and RESOURCES.get((found["group"] or "", found["version"], found["plural"]))
    if not found or not resource or (found["subresource"] or "status") != "status":
        raise no_such_resource()
    return Target(resource, found["namespace"] or "", found["name"] or "", found["subresource"])


def verb_of(method: str, query: Mapping[str, str], target: Target) -> str:
    """The verb as RBAC names it."""
    if method == "GET":
        if query.get("watch") in {"1", "true", "True"}:
            return "watch"
        return "get" if target.name else "list"
    if method not in _VERBS or (method == "POST") is bool(target.name):
        raise not_allowed()
    return _VERBS[method]
