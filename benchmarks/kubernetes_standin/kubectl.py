"""What an operator does with kubectl, sent as kubectl sends it."""

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks.kubernetes_standin.resources import Object

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


class Kubectl:
    """An operator with a kubeconfig of the stand-in, for as long as the context lasts.

    What the server refuses is raised as aiohttp's ClientResponseError.
    """

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._url = cluster["server"]
        self._ssl = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._token = config["users"][0]["user"]["token"]

    async def __aenter__(self) -> "Kubectl":
        headers = {"Authorization": f"Bearer {self._token}", "User-Agent": "kubectl/v1.34.0 (linux/amd64)"}
        connector = aiohttp.TCPConnector(ssl=self._ssl)
        self._session = aiohttp.ClientSession(self._url, connector=connector, headers=headers, raise_for_status=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, node: str) -> Object:
        return await self._answer("GET", node)

    async def cordon(self, node: str) -> None:
        await self._patch(node, STRATEGIC, {"spec": {"unschedulable": True}})

    async def uncordon(self, node: str) -> None:
        await self._patch(node, STRATEGIC, {"spec": {"unschedulable": None}})

    async def taint(self, node: str, key: str, value: str, effect: str) -> None:
        """Adds a taint, or replaces the one with this key and effect."""
        taint = {"key": key, "value": value, "effect": effect}
        await self._retaint(node, lambda old: (old["key"], old["effect"]) != (key, effect), taint)

    async def untaint(self, node: str, key: str) -> None:
        """Removes the taints with this key."""
        await self._retaint(node, lambda old: old["key"] != key)

    async def label(self, node: str, key: str, value: str | None) -> None:
        """Sets a label, or removes it with None."""
        await self._patch(node, MERGE, {"metadata": {"labels": {key: value}}}, "kubectl-label")

    async def annotate(self, node: str, key: str, value: str | None) -> None:
        """Sets an annotation, or removes it with None."""
        await self._patch(node, MERGE, {"metadata": {"annotations": {key: value}}}, "kubectl-annotate")

    async def delete(self, node: str) -> Object:
        return await self._answer("DELETE", node)

    async def create(self, item: Object) -> Object:
        """A node that is to be there, such as `objects.node` makes them."""
        return await self._answer("POST", "", json=item, params={"fieldManager": "kubectl-create"})

    async def _retaint(self, node: str, keeps: Callable[[Object], bool], *new: Object) -> None:
        """Taints are one value: all of them are sent."""
        taints = (await self.get(node))["spec"].get("taints", [])
        kept = [taint for taint in taints if keeps(taint)]
        await self._patch(node, STRATEGIC, {"spec": {"taints": [*kept, *new] or None}}, "kubectl-taint")

    async def _patch(self, node: str, content_type: str, change: Object, manager: str | None = None) -> None:
        params = {"fieldManager": manager} if manager else {}
        headers = {"Content-Type": content_type}
        await self._answer("PATCH", node, data=json.dumps(change), headers=headers, params=params)

    async def _answer(self, method: str, node: str, **more: Any) -> Object:
        path = f"/api/v1/nodes/{node}" if node else "/api/v1/nodes"
        async with self._session.request(method, path, **more) as response:
            answer: Object = await response.json()
            return answer
