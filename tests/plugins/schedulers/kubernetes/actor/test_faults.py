"""What an API server does under load or in trouble is an outcome that says so, and is healed by telling again."""

import pytest
from benchmarks.kubernetes_standin.faults import Fault
from benchmarks.kubernetes_standin.resources import EVENTS

from muster import Effect, Mark
from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes.client import KubernetesClient

STEPS = {
    "read": ("get", "/api/v1/nodes/read"),
    "cordon": ("patch", "/api/v1/nodes/cordon"),
}
"""By the name of a node, the request at which something goes wrong for it."""

FAULTS = {
    Fault.TOO_MANY: "HTTP 429: Too Many Requests",
    Fault.INTERNAL: "HTTP 500: Internal error occurred: etcdserver: request timed out",
    Fault.UNAVAILABLE: "HTTP 503: the server is currently unable",
    Fault.DROPPED_BEFORE: "Server disconnected",
    Fault.DROPPED_AFTER: "Server disconnected",
}
ASKED_AGAIN = {Fault.DROPPED_BEFORE, Fault.DROPPED_AFTER}
"""In these cases the HTTP client itself asks a second time, if it is about something that changes nothing."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_at_any_step_is_healed_by_telling_again(standin, coordinator, fault):
    """The first call is FAILED, the second DONE, and nothing exists twice."""
    for name, (verb, path) in STEPS.items():
        standin.add_node(name)
        times = 2 if verb == "get" and fault in ASKED_AGAIN else 1
        standin.order(fault, verb=verb, path=path, times=times)
        outcome = await coordinator.tell("CORDONED", node=name)
        assert outcome.effect is Effect.FAILED
        assert FAULTS[fault] in outcome.detail
        assert (await coordinator.tell("CORDONED", node=name)).effect is Effect.DONE
        assert (await coordinator.see(name)).mark is Mark.OURS
    assert len([*standin.store.all(EVENTS)]) == len(STEPS)
    for name in STEPS:
        assert (await coordinator.tell("IN_SERVICE", node=name)).effect is Effect.DONE
        assert (await coordinator.see(name)).mark is Mark.NONE


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_node_does_not_wait_for_its_event(coordinator, fault, standin):
    """The node is in its right state without the Event, so a retry would not help it."""
    for after in ("CORDONED", "IN_SERVICE"):
        standin.order(fault, verb="create", path="/api/v1/namespaces/default/events")
        outcome = await coordinator.tell(after)
        text = FAULTS[fault] if fault not in ASKED_AGAIN else "no answer from "
        assert outcome.effect is Effect.DONE
        assert f"label muster.dev/service-state={'cordoned' if after == 'CORDONED' else 'in-service'}" in outcome.detail
        assert f"; no Event: {text}" in outcome.detail
    assert "unschedulable" not in standin.node("n1")["spec"]


async def test_how_long_to_wait_is_passed_on(standin, coordinator):
    """The outcome has the server's wait for the retry."""
    standin.order(Fault.TOO_MANY, seconds=17)
    assert (await coordinator.tell()).retry_after_s == 17.0
    standin.order(Fault.INTERNAL)
    assert (await coordinator.tell()).retry_after_s is None


async def test_nobody_waits_for_more_than_an_hour(standin, coordinator):
    """A longer wait is a mistake, and the node would stay unchanged for that time."""
    for seconds in (3601, 99_999_999):
        standin.order(Fault.TOO_MANY, seconds=seconds)
        assert (await coordinator.tell()).retry_after_s == 3600.0


async def test_a_node_that_has_changed_is_looked_at_again(standin, coordinator):
    """The change is decided again twice, without a pause."""
    standin.order(Fault.CONFLICT, verb="patch")
    assert (await coordinator.tell()).effect is Effect.DONE
    standin.order(Fault.CONFLICT, verb="patch", times=4)
    outcome = await coordinator.tell("IN_SERVICE")
    assert outcome.effect is Effect.FAILED
    assert "HTTP 409" in outcome.detail


@pytest.fixture
def between_look_and_change(monkeypatch):
    """Has something happen once, when a coordinator has read a node and not changed it yet."""
    read = KubernetesClient.node

    def order(happens):
        async def node(client, name):
            found = await read(client, name)
            monkeypatch.setattr(KubernetesClient, "node", read)
            await happens(name)
            return found

        monkeypatch.setattr(KubernetesClient, "node", node)

    return order


async def test_a_person_who_is_quicker_is_respected(standin, coordinator, kubectl, between_look_and_change):
    """The cordon belongs to a person who sets it before us."""
    between_look_and_change(kubectl.cordon)
    assert (await coordinator.tell("CORDONED")).effect is Effect.LEFT
    assert "muster.dev/quarantine" not in standin.node("n1")["metadata"]["annotations"]


async def test_a_node_that_is_deleted_is_not_created_again(standin, coordinator, kubectl, between_look_and_change):
    """Applying to a missing node would create it."""
    between_look_and_change(kubectl.delete)
    assert (await coordinator.tell("CORDONED")).effect is Effect.LEFT
    assert (await coordinator.survey()).nodes == ()


async def test_a_server_that_does_not_answer_is_given_up(standin, new_coordinator):
    """After the time that it is given."""
    standin.add_node("n1")
    coordinator = new_coordinator({"kubeconfig": str(standin.kubeconfig()), "timeout_s": 0.2})
    standin.order(Fault.SLOW, seconds=1)
    outcome = await coordinator.tell()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail == f"node n1: {standin.url} did not answer within 0.2 s"


async def test_a_server_that_is_not_there_is_named(standin, coordinator):
    """And found again when it is back."""
    await standin.stop()
    outcome = await coordinator.tell()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail == f"node n1: no answer from {standin.url}: Connection refused"
    with pytest.raises(Unavailable, match=standin.url):
        await coordinator.survey()
    await standin.start()
    assert (await coordinator.tell()).effect is Effect.DONE


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_an_answer_that_is_none_is_a_failure(standin, coordinator, verb):
    """With what is wrong about it."""
    standin.order(Fault.GARBAGE, verb=verb)
    outcome = await coordinator.tell()
    assert (outcome.effect, "is not an answer of Kubernetes" in outcome.detail) == (Effect.FAILED, True)


@pytest.fixture
def compacted(standin, monkeypatch):
    """An API server that forgets what it was whenever it has given a page, so that no list can go on."""
    page = KubernetesClient._page

    async def page_and_forget(client, query):
        found = await page(client, query)
        standin.store.forget()
        return found

    monkeypatch.setattr(KubernetesClient, "_page", page_and_forget)


@pytest.mark.usefixtures("compacted")
async def test_a_list_whose_rest_is_forgotten_is_asked_for_at_once(standin, coordinator):
    """As kubectl does, when the pages took too long and the token for the next one has expired."""
    for index in range(2, 502):
        standin.add_node(f"n{index}")
    assert len((await coordinator.survey()).nodes) == 501
    asked = [(it.code, sorted(it.query)) for it in standin.requests if it.verb == "list"]
    assert asked == [(200, ["limit"]), (410, ["continue", "limit"]), (200, [])]
