"""What the survey tells of a cluster, and what it says when it cannot."""

import pytest

from muster import Mark


async def test_all_nodes_are_listed(standin, coordinator):
    """Page by page, however many they are."""
    for index in range(2, 1102):
        standin.add_node(f"n{index}", unschedulable=index == 7)
    survey = await coordinator.survey()
    assert len(survey.nodes) == 1101
    assert [node.node for node in survey.nodes if node.mark is Mark.FOREIGN] == ["n7"]
    assert [request.query.get("limit") for request in standin.requests if request.verb == "list"] == ["500"] * 3
    assert (survey.summary, survey.can_cordon) == (f"Kubernetes at {standin.url}", True)


async def test_a_node_brings_its_labels(standin, coordinator):
    """For whoever wants to know where it stands, and why it goes."""
    standin.add_node(
        "n2", labels={"muster/rack": "r7"}, taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
    )
    seen = await coordinator.see("n2")
    assert seen.labels["muster/rack"] == "r7"
    assert not seen.is_new
    assert seen.leaving == "Karpenter removes it (taint karpenter.sh/disrupted:NoSchedule)"


async def test_a_new_node_is_told_from_the_one_before(standin, coordinator, kubectl):
    """Which had the same name."""
    taints = [{"key": "muster.dev/accepting", "effect": "NoSchedule"}]
    standin.add_node("n2", taints=taints)
    before = await coordinator.see("n2")
    assert (before.is_new, await coordinator.see("n2")) == (True, before)
    await kubectl.delete("n2")
    standin.add_node("n2", taints=taints)
    assert (await coordinator.see("n2")).registration not in {None, before.registration}


def taint(key, effect="NoSchedule", **more):
    return {"key": key, "effect": effect, **more}


@pytest.fixture
def kept_off(standin):
    """Makes a cluster of nodes with these taints, beside n1 which has none; gives by node what keeps work off it."""

    async def survey(coordinator, *taints):
        for number, each in enumerate(taints, start=2):
            standin.add_node(f"n{number}", taints=each)
        return {node.node: node.keeps_off for node in (await coordinator.survey()).nodes if node.keeps_off}

    return survey


UNHEALTHY = taint("nvidia.com/gpu-unhealthy", value="xid")


async def test_a_taint_of_somebody_else_keeps_work_off(coordinator, kept_off):
    """It is named, with its value; the mark stays none, so muster may act on the node."""
    said = "taint nvidia.com/gpu-unhealthy=xid:NoSchedule, example.com/a:NoExecute"
    assert await kept_off(coordinator, [UNHEALTHY, taint("example.com/a", "NoExecute")], [], []) == {"n2": said}
    assert (await coordinator.see("n2")).mark is Mark.NONE


async def test_what_most_nodes_have_is_ordinary(coordinator, kept_off):
    """Work that is meant for these nodes tolerates it, as on GKE, whatever the value of each."""
    values = ({**UNHEALTHY, "value": str(number)} for number in range(4))
    assert await kept_off(coordinator, *([each] for each in values)) == {}


async def test_what_half_of_the_nodes_have_is_not_ordinary(coordinator, kept_off):
    """Two of four."""
    assert set(await kept_off(coordinator, [UNHEALTHY], [UNHEALTHY], [])) == {"n2", "n3"}


async def test_only_nodes_with_gpus_decide_what_is_ordinary(standin, coordinator, kept_off):
    """Two of three have it, however many nodes of other kinds there are."""
    for number in range(20):
        standin.add_node(f"web{number}", gpus=0)
    assert await kept_off(coordinator, [UNHEALTHY], [UNHEALTHY]) == {}


@pytest.mark.parametrize(
    "passed_over",
    [
        taint("nvidia.com/gpu", value="present"),
        taint("muster.dev/accepting"),
        taint("muster.dev/testing", value="default"),
        taint("muster.dev/quarantine"),
        taint("karpenter.sh/disrupted"),
        taint("node.kubernetes.io/unschedulable"),
        taint("example.com/slow", "PreferNoSchedule"),
    ],
    ids=lambda each: each["key"],
)
async def test_other_taints_keep_no_work_off(coordinator, kept_off, passed_over):
    """Ours, those of a node that leaves, that of a cordon, those that only ask, and what the settings call ordinary."""
    assert await kept_off(coordinator, [passed_over], [], []) == {}


async def test_a_site_names_its_ordinary_taints(standin, new_coordinator, kept_off):
    """As those of the pools of its teams."""
    standin.add_node("n1")
    coordinator = new_coordinator({"kubeconfig": str(standin.kubeconfig()), "ordinary_taints": ["example.com/team"]})
    assert set(await kept_off(coordinator, [taint("example.com/team")], [taint("nvidia.com/gpu")], [])) == {"n3"}
