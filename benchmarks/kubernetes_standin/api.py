"""What the API does for a request of somebody who may make it: an answer in bytes, or Refused."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from benchmarks.kubernetes_standin import patches, statuses
from benchmarks.kubernetes_standin.access import Attempt, User, denied
from benchmarks.kubernetes_standin.ownership import Writer
from benchmarks.kubernetes_standin.resources import ACCESS_REVIEWS, NODES, Object
from benchmarks.kubernetes_standin.selectors import selector
from benchmarks.kubernetes_standin.store import Store
from benchmarks.kubernetes_standin.target import Target
from benchmarks.kubernetes_standin.watching import Selection

APPLY = "application/apply-patch+yaml"

PATCHES = {
    "application/json-patch+json": patches.json_patched,
    "application/merge-patch+json": patches.merge_patched,
    "application/strategic-merge-patch+json": patches.strategic_patched,
}

VERSION = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0+standin",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.24.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""Whom it stands in for."""


@dataclass(frozen=True)
class Call:
    """A request as the API takes it. `agent` is the User-Agent, which names a writer that does not name itself."""

    user: User
    target: Target
    query: Mapping[str, str]
    content_type: str
    agent: str
    body: bytes

    def writer(self, operation: str = "Update") -> Writer:
        manager = self.query.get("fieldManager") or self.agent.partition("/")[0]
        return Writer(manager, operation, self.target.resource.api_version, self.target.subresource)

    def sent(self) -> Any:
        """The body, which is JSON, or for an apply also YAML."""
        try:
            return json.loads(self.body)
        except ValueError:
            if self.content_type != APPLY:
                raise statuses.bad_request("the body of the request is not JSON") from None
        try:
            return yaml.safe_load(self.body)
        except yaml.YAMLError as error:
            raise statuses.bad_request(f"error decoding YAML: {error}") from None


Answer = tuple[int, bytes]
"""The HTTP status and the body."""


def answer(store: Store, call: Call, verb: str) -> Answer:
    """Carries out any verb but `watch`; in a dry run on a copy of the store."""
    if call.query.get("dryRun") == "All":
        store = store.copy()
    return _VERBS[verb](store, call)


def selection(call: Call) -> Selection:
    """What a list or a watch is about."""
    labels, fields = (call.query.get(name, "") for name in ("labelSelector", "fieldSelector"))
    resource, namespace, _ = call.target.key
    return Selection(resource, namespace, selector(resource, labels, fields))


def _got(store: Store, call: Call) -> Answer:
    return 200, store.get(*call.target.key).encoded


def _listed(store: Store, call: Call) -> Answer:
    """A page of the list; a later page has the objects as they are by then."""
    wanted = selection(call)
    version, start = _continued(store, call.query.get("continue"))
    limit = int(call.query.get("limit") or 0)
    found = [(key, it) for key, it in store.all(wanted.resource) if list(key) > start and wanted.has(it)]
    page = found[:limit] if limit else found
    metadata: Object = {"resourceVersion": str(version)}
    if len(page) < len(found):
        token = {"v": "meta.k8s.io/v1", "rv": version, "start": page[-1][0]}
        metadata["continue"] = base64.b64encode(json.dumps(token).encode()).decode()
        if not any(call.query.get(name) for name in ("labelSelector", "fieldSelector")):
            metadata["remainingItemCount"] = len(found) - len(page)
    head = {
        "kind": f"{wanted.resource.kind}List",
        "apiVersion": wanted.resource.api_version,
        "metadata": metadata,
    }
    return 200, b'%s,"items":[%s]}' % (json.dumps(head).encode()[:-1], b",".join(it.listed for _, it in page))


def _continued(store: Store, token: str | None) -> tuple[int, list[str]]:
    """The version of a list and the key after which its next page starts."""
    if not token:
        return store.version, []
    try:
        known = json.loads(base64.b64decode(token))
        version, start = int(known["rv"]), list(known["start"])
    except (ValueError, KeyError, TypeError):
        raise statuses.bad_request("continue key is not valid") from None
    if version < store.oldest:
        raise statuses.too_old(
            "The provided continue parameter is too old to display a consistent list result. "
            "You must start a new list without the continue parameter."
        )
    return version, start


def _created(store: Store, call: Call) -> Answer:
    if call.target.resource is ACCESS_REVIEWS:
        return 201, _reviewed(call)
    resource, namespace, _ = call.target.key
    return 201, store.create(resource, namespace, call.sent(), call.writer()).encoded


def _patched(store: Store, call: Call) -> Answer:
    if call.content_type == APPLY:
        return _applied(store, call)
    if call.content_type not in PATCHES:
        raise statuses.unknown_format(", ".join((*PATCHES, APPLY)))
    if "force" in call.query:
        raise statuses.wrong_options(("force", "Forbidden: may not be specified for non-apply patch"))
    change, patch = PATCHES[call.content_type], call.sent()
    return 200, store.patch(*call.target.key, call.writer(), lambda item: change(item, patch)).encoded


def _applied(store: Store, call: Call) -> Answer:
    """Applies, or creates what is not there, which needs the permission to create."""
    if not call.query.get("fieldManager"):
        raise statuses.wrong_options(("fieldManager", "Required value: is required for apply patch"))
    resource, namespace, name = call.target.key
    config = call.sent()
    if (config.get("apiVersion"), config.get("kind")) != (resource.api_version, resource.kind):
        raise statuses.bad_request(f"invalid object type: {config.get('apiVersion')}, Kind={config.get('kind')}")
    if config.get("metadata", {}).get("managedFields"):
        raise statuses.bad_request("metadata.managedFields must be nil")
    if call.target.subresource or store.has(*call.target.key):
        force = call.query.get("force") == "true"
        return 200, store.apply(*call.target.key, call.writer("Apply"), config, force=force).encoded
    attempt = Attempt("create", resource.group, resource.plural, namespace or None, name)
    if not call.user.may(attempt):
        raise denied(call.user, attempt, resource)
    if uid := config["metadata"].get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise statuses.conflict(resource, name, why)
    return 201, store.create(resource, namespace, config, call.writer("Apply")).encoded


def _deleted(store: Store, call: Call) -> Answer:
    deleted = store.delete(*call.target.key)
    if call.target.resource is not NODES:
        return 200, deleted.encoded
    metadata = deleted.item["metadata"]
    details = {"name": metadata["name"], "kind": call.target.resource.plural, "uid": metadata["uid"]}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return 200, json.dumps(status).encode()


def _reviewed(call: Call) -> bytes:
    """A SelfSubjectAccessReview, answered."""
    review = call.sent()
    asked = review["spec"]["resourceAttributes"]
    subresource = f"/{asked['subresource']}" if asked.get("subresource") else ""
    attempt = Attempt(
        asked["verb"],
        asked.get("group", ""),
        f"{asked['resource']}{subresource}",
        asked.get("namespace"),
        asked.get("name"),
    )
    allowed = call.user.may(attempt)
    reason = {"reason": f'RBAC: allowed to User "{call.user.name}"'} if allowed else {}
    kind = {"kind": ACCESS_REVIEWS.kind, "apiVersion": ACCESS_REVIEWS.api_version}
    metadata = {"metadata": {"creationTimestamp": None}}
    return json.dumps({**kind, **metadata, "spec": review["spec"], "status": {"allowed": allowed, **reason}}).encode()


_VERBS = {"get": _got, "list": _listed, "create": _created, "patch": _patched, "delete": _deleted}
