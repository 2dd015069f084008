"""What the survey tells of a cluster, and what it says when it cannot."""

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
