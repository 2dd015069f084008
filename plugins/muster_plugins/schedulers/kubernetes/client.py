"""The coordinator's requests to the API server. Failures are ApiError with a text for people."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from muster.model import Json
from muster_plugins.schedulers.kubernetes.api_error import ApiError, Conflict, Expired
from muster_plugins.schedulers.kubernetes.calls import ASK_RIGHTS, CREATE_EVENT, LIST_NODES, READ_NODE, Call
from muster_plugins.schedulers.kubernetes.connection import Connection
from muster_plugins.schedulers.kubernetes.marks import FIELD_MANAGER
from muster_plugins.schedulers.kubernetes.node import KubernetesNode, NodeList
from muster_plugins.schedulers.kubernetes.patches import Form, Patch
from muster_plugins.schedulers.kubernetes.session import Question

_PAGE = 500
"""Nodes in one answer, like kubectl: a few megabytes."""

M = TypeVar("M", bound=BaseModel)


class _Allowed(BaseModel):
    allowed: bool


class _AccessReview(BaseModel):
    status: _Allowed


class KubernetesClient:
    """The API server's calls that muster needs. Each request waits for its `turn`."""

    def __init__(self, connection: Connection, turn: Callable[[], Awaitable[None]]) -> None:
        self._connection = connection
        self._turn = turn

    async def nodes(self) -> list[KubernetesNode]:
        """All nodes, page by page; in one page if the server has forgotten the next page."""
        try:
            page = await self._page({"limit": str(_PAGE)})
            nodes = page.items
            while page.rest:
                page = await self._page({"limit": str(_PAGE), "continue": page.rest})
                nodes += page.items
        except Expired:
            nodes = (await self._page({})).items
        return nodes

    async def node(self, name: str) -> KubernetesNode:
        """One node; Absent if it does not exist."""
        return await self._ask(KubernetesNode, Question(call=READ_NODE, name=name))

    async def patch(self, node: KubernetesNode, patch: Patch) -> KubernetesNode:
        """The node after the patch; Conflict if a guarded patch was decided on an older state."""
        # Others wrote these fields before we read the node, and we have respected their values where needed.
        force = {"force": "true"} if patch.form is Form.APPLY else {}
        # With its uid, the patch neither changes a new node of the same name nor creates a node.
        known = {"name": node.name, "uid": node.metadata.uid}
        if patch.guarded:
            known["resourceVersion"] = node.metadata.version
        question = Question(
            call=patch.call,
            name=node.name,
            query={"fieldManager": FIELD_MANAGER, **force},
            body={"apiVersion": "v1", "kind": "Node", **patch.rest, "metadata": {**patch.metadata, **known}},
            form=patch.form,
        )
        return await self._ask(KubernetesNode, question)

    async def create_event(self, event: Json) -> None:
        """Writes an event, unless it exists."""
        with suppress(Conflict):
            await self._answer(Question(call=CREATE_EVENT, query={"fieldManager": FIELD_MANAGER}, body=event))

    async def may(self, call: Call) -> bool:
        """Whether we are allowed this call."""
        resource, _, subresource = call.resource.partition("/")
        attributes = {"verb": call.verb, "group": call.group, "resource": resource, "subresource": subresource}
        asked: Json = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {**attributes, "namespace": call.namespace or ""}},
        }
        return (await self._ask(_AccessReview, Question(call=ASK_RIGHTS, body=asked))).status.allowed

    async def _page(self, query: dict[str, str]) -> NodeList:
        return await self._ask(NodeList, Question(call=LIST_NODES, query=query))

    async def _ask(self, model: type[M], question: Question) -> M:
        return read_answer(model, question, await self._answer(question))

    async def _answer(self, question: Question) -> bytes:
        await self._turn()
        return await self._connection.ask(question)


def read_answer(model: type[M], question: Question, answer: bytes) -> M:
    """The object in an answer. Raises ApiError if it is none of Kubernetes."""
    try:
        return model.model_validate_json(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        text = f"the answer to {question.call} is not an answer of Kubernetes: {where}: {first['msg']}"
        raise ApiError(text) from None
