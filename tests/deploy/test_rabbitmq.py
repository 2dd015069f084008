"""RabbitMQ as a broker: one node that is checked, and three under agents and coordinators in processes of their own."""

import asyncio
import json
from collections import defaultdict
from typing import Any

import pytest
from benchmarks.fleet import Fleet
from tests.deploy.clients import NODE, OTHER
from tests.rabbitmq import RabbitCluster

from muster.broker_acl import COORDINATOR, rabbitmq_definitions

NODES = ("n1", "n2", "n3", "n4")
QUIET = {"agent": {"spread_s": 600}}
"""Nothing waits for the other checks, and some import torch."""

BUSY = {**QUIET, "checks": {"host": {"interval_s": 0.5}}}
"""Two runs a second of each node."""

BACK_WITHIN_S = 45.0
"""It takes 3 s on an idle machine; this is for one with other work."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = RabbitCluster(tmp_path_factory.mktemp("cluster"), 3, open_to_all=True)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def url(cluster) -> str:
    """All of its addresses, as an operator sets `broker.url`."""
    return ",".join(node.url for node in cluster.nodes)


def events(path, name: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in path.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line.get("event") == name]


def runs_by_node(fleet: Fleet) -> dict[str, list[int]]:
    """The numbers of the runs that the coordinator has of each node, smallest first."""
    numbers = defaultdict(list)
    for run in fleet.client.pages("runs")["items"]:
        numbers[run["node"]].append(run["seq"])
    return {node: sorted(found) for node, found in numbers.items()}


async def until(condition, within_s: float = BACK_WITHIN_S) -> None:
    async with asyncio.timeout(within_s):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.1)


async def test_a_new_coordinator_learns_what_the_broker_does_not_tell(url, tmp_path):
    """RabbitMQ keeps inventories and sends them to nobody who subscribes with a wildcard; so agents are asked."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    async with Fleet(tmp_path / "first", url) as fleet:
        await fleet.start_agents(*NODES, settings=QUIET)
        async with Fleet(tmp_path / "second", url) as other:
            await other.know(NODES)
            agents = other.client.pages("nodes")["items"]
    assert {agent["name"] for agent in agents} == {*NODES}
    assert not [finding for agent in agents for finding in agent["findings"] if finding["code"].startswith("agent.")]


async def test_a_node_of_the_cluster_dies_under_load(cluster, url, tmp_path):
    """Who was connected there goes on at another within seconds; each run is stored once, and nobody is lost."""
    async with Fleet(tmp_path, url) as fleet:
        await fleet.start_agents(*NODES, settings=BUSY)
        await until(lambda: all(len(runs_by_node(fleet).get(node, ())) > 5 for node in NODES))
        log = tmp_path / "coordinator.log"
        (connected,) = events(log, "broker_connected")
        victim = next(node for node in cluster.nodes if node.url == connected["broker"])
        victim.kill()
        before = {node: runs[-1] for node, runs in runs_by_node(fleet).items()}
        await until(lambda: all(runs_by_node(fleet)[node][-1] > before[node] + 5 for node in NODES))
        assert events(log, "broker_connected")[-1]["broker"] != victim.url
        stored = runs_by_node(fleet)
        lost = fleet.client.get("fleet")["lost"]
    assert {node: runs == list(range(1, len(runs) + 1)) for node, runs in stored.items()} == dict.fromkeys(NODES, True)
    assert lost == []


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory):
    """RabbitMQ with the printed access list; gives the URL of its MQTT."""
    directory = tmp_path_factory.mktemp("rabbitmq")
    cluster = RabbitCluster(directory, 1)
    try:
        cluster.start()
        (node,) = cluster.nodes
        for name in (COORDINATOR, NODE, OTHER):
            node.control("add_user", name, name)
        definitions = directory / "definitions.json"
        definitions.write_text(rabbitmq_definitions("default", [NODE, OTHER]))
        node.control("import_definitions", definitions)
        yield node.url
    finally:
        cluster.stop()


@pytest.mark.parametrize("node", [NODE, OTHER])
def test_rabbitmq_separates_nodes_but_does_not_deliver_what_it_keeps(rabbitmq, checked, node):
    """All else holds, with the access list that muster prints; but a dot in a name becomes a slash."""
    code, found = checked(rabbitmq, node)
    assert code == 1
    assert "not for a subscription with a wildcard" in found.pop("retained messages")
    assert "name no node or fleet so" in found.pop("dots")
    assert [text for text in found.values() if not text.startswith("PASS ")] == []
    assert found["a node's writing"].endswith("12 others are refused, by ending the connection")
