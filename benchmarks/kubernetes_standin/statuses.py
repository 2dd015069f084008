"""What kube-apiserver answers when it does not do what it was asked for: the Status bodies and the codes.

The texts are those of k8s.io/apimachinery/pkg/api/errors and k8s.io/apiserver.
"""

from collections.abc import Sequence

from benchmarks.kubernetes_standin.resources import Object, Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

Problem = tuple[str, str]
"""The path of a field, and what is wrong with it, beginning as one of Kubernetes' kinds of field errors."""

_REASONS = {
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Too long": "FieldValueTooLong",
    "Unsupported value": "FieldValueNotSupported",
}


class Refused(Exception):
    """A request is refused: `body` is the Status that says why, or a text where the server has none."""

    def __init__(self, code: int, body: Object | str, retry_after_s: int | None = None) -> None:
        super().__init__(body)
        self.code = code
        self.body = body
        self.retry_after_s = retry_after_s


def unauthorized() -> Refused:
    """The token is missing, unknown or no longer valid."""
    return _failure(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str | None, why: str) -> Refused:
    """RBAC does not allow it; `why` says who cannot do what."""
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    return _failure(403, "Forbidden", f"{subject} is forbidden: {why}", _details(resource, name))


def not_found(resource: Resource, name: str) -> Refused:
    """There is no such object."""
    return _failure(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def no_such_resource() -> Refused:
    """The path names no resource."""
    return _failure(404, "NotFound", "the server could not find the requested resource", {})


def not_allowed() -> Refused:
    """The resource has no such verb."""
    return _failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> Refused:
    """Somebody else has written since, or the object is not the one that was meant."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return _failure(409, "Conflict", message, _details(resource, name))


def already_exists(resource: Resource, name: str) -> Refused:
    """An object of this name is there already."""
    return _failure(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', _details(resource, name))


def apply_conflict(message: str, causes: list[Object]) -> Refused:
    """Others own the fields that an apply would change."""
    return _failure(409, "Conflict", message, {"causes": causes})


def too_old(message: str) -> Refused:
    """What the client knows is so old that the server cannot go on from there."""
    return _failure(410, "Expired", message)


def unknown_format(accepted: str) -> Refused:
    """No patch of this Content-Type is known."""
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return _failure(415, "UnsupportedMediaType", message)


def invalid(resource: Resource, name: str, problems: Sequence[Problem]) -> Refused:
    """The object is not to be stored so."""
    kind = {"group": resource.group} if resource.group else {}
    details = {"name": name, **kind, "kind": resource.kind, "causes": [_cause(problem) for problem in problems]}
    subject = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return _failure(422, "Invalid", f'{subject} "{name}" is invalid: {_listed(problems)}', details)


def wrong_options(problem: Problem) -> Refused:
    """The options of a patch do not go together."""
    details = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [_cause(problem)]}
    return _failure(422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: {_listed([problem])}', details)


def unprocessable() -> Refused:
    """A JSON patch that does not fit the object, a failed `test` among the reasons."""
    return _failure(422, "Invalid", "the server rejected our request due to an error in our request", {})


def bad_request(message: str) -> Refused:
    """The request makes no sense."""
    return _failure(400, "BadRequest", message)


def too_many_requests(retry_after_s: int) -> Refused:
    """Priority and fairness refuses the request for now, before anything that makes a Status has seen it."""
    return Refused(429, "Too many requests, please try again later.\n", retry_after_s)


def internal_error() -> Refused:
    """The server itself fails, here because of etcd."""
    why = "etcdserver: request timed out"
    return _failure(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


def unavailable(retry_after_s: int) -> Refused:
    """The server cannot serve anybody now."""
    message = "the server is currently unable to handle the request"
    return _failure(503, "ServiceUnavailable", message, {"retryAfterSeconds": retry_after_s})


def _failure(code: int, reason: str, message: str, details: Object | None = None) -> Refused:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({} if details is None else {"details": details}),
        "code": code,
    }
    return Refused(code, status, (details or {}).get("retryAfterSeconds"))


def _listed(problems: Sequence[Problem]) -> str:
    texts = [f"{field}: {why}" for field, why in problems]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _cause(problem: Problem) -> Object:
    field, why = problem
    return {"reason": _REASONS[why.partition(":")[0]], "message": why, "field": field}


def _details(resource: Resource, name: str | None) -> Object:
    group = {"group": resource.group} if resource.group else {}
    return {**({"name": name} if name else {}), **group, "kind": resource.plural}
