"""Which of several sources says the machine type of a node."""

from tests.cases import cases

from muster.machine_type import all_with_source, by_precedence, disagreement, labelled_machine_type
from muster.model import MachineType, MachineTypeSource

NEW, OLD = "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"
A4, A3 = "a4-highgpu-8g", "a3-ultragpu-8g"


def said(name: str, source: MachineTypeSource, said_by: str = "x") -> MachineType:
    return MachineType(name=name, source=source, said_by=said_by)


@cases(
    ("labels", "found"),
    [
        ({NEW: A4}, (A4, NEW)),
        ({OLD: A4}, (A4, OLD)),
        ({NEW: A4, OLD: A3}, (A4, NEW)),
        ({NEW: "", OLD: A3}, (A3, OLD)),
        ({NEW: "k3s", OLD: "k3s"}, None),
        ({NEW: "rke2"}, None),
        ({"kubernetes.io/hostname": A4}, None),
        ({NEW: "a b"}, None),
        ({NEW: "x" * 64}, None),
        ({}, None),
    ],
)
def test_labels_of_kubernetes_have_the_machine_type(labels, found):
    """Under the present or the former key. What a distribution writes without a cloud is no machine type."""
    labelled = labelled_machine_type(labels)
    assert (None if labelled is None else (labelled.name, labelled.said_by)) == found


def test_each_source_has_precedence_over_the_next():
    """The operator, the scheduler, a plugin, the cloud, the firmware; of one source, the first counts."""
    found = [said(source.value, source) for source in MachineTypeSource]
    assert [each.name for each in by_precedence(found[::-1])] == ["setting", "label", "plugin", "cloud", "dmi"]
    twice = [said("new", MachineTypeSource.CLOUD), said("old", MachineTypeSource.CLOUD)]
    assert [each.name for each in by_precedence(twice)] == ["new"]


@cases(
    ("found", "words"),
    [
        ([], ""),
        ([said(A4, MachineTypeSource.LABEL, NEW), said(A4, MachineTypeSource.CLOUD, "Google Cloud")], ""),
        ([said(A4, MachineTypeSource.LABEL, NEW), said("PowerEdge XE9680", MachineTypeSource.DMI)], ""),
        ([said(A4, MachineTypeSource.SETTING, "agent.machine_type"), said(A3, MachineTypeSource.LABEL, NEW)], ""),
        (
            [said(A4, MachineTypeSource.LABEL, OLD), said(A3, MachineTypeSource.CLOUD, "Google Cloud")],
            f"{A4} (label {OLD}), {A3} (metadata server of Google Cloud)",
        ),
    ],
)
def test_sources_that_disagree_are_named(found, words):
    """The product name of a maker is another kind of name, and contradicts nobody. An operator ends the dispute."""
    assert disagreement(tuple(found)) == words


def test_a_machine_type_is_shown_with_its_source():
    """An agent of an earlier release sends no source."""
    found = [said("PowerEdge XE9680", MachineTypeSource.DMI, "product_name")]
    assert all_with_source("PowerEdge XE9680", found) == ["PowerEdge XE9680 (firmware, product_name)"]
    assert all_with_source(A4, []) == [A4]
    assert all_with_source(None, []) == []
