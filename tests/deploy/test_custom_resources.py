"""Mistakes in custom resources are found: otherwise the tests of the examples would show nothing."""

import copy
from pathlib import Path
from typing import Any

from generator.kustomize import documents_in
from tests.cases import cases
from tests.deploy.custom_resources import SPECS, problems

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FILES = sorted(EXAMPLES.glob("*/*.yaml"))
OBJECTS = [each for path in FILES for each in documents_in(path.read_text(encoding="utf-8"))]
OF_KIND = {each["kind"]: each for each in OBJECTS if each["kind"] in SPECS.get(each["apiVersion"], {})}
"""By kind, an example of each custom resource."""

ABSENT = object()

Place = tuple[str | int, ...]

FLAVOR: Place = ("spec", "resourceGroups", 0, "flavors", 0)
WORKER: Place = ("spec", "workerGroupSpecs", 0)
MASTER: Place = ("spec", "pytorchReplicaSpecs", "Master")
CONTAINER: Place = ("template", "spec", "containers", 0)
JOB: Place = ("spec", "replicatedJobs", 0, "template", "spec")


def problems_with(kind: str, place: Place, value: Any) -> list[str]:
    """The problems of an example that has another value at a place."""
    *way, last = place
    item = within = copy.deepcopy(OF_KIND[kind])
    for step in way:
        within = within[step]
    if value is ABSENT:
        del within[last]
    else:
        within[last] = value
    return problems(item)


def written(place: Place) -> str:
    """A place as problems name it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


def test_every_kind_has_an_example():
    """So the table has no kind that nothing uses."""
    assert {kind for kinds in SPECS.values() for kind in kinds} == OF_KIND.keys()
    assert [problem for each in OF_KIND.values() for problem in problems(each)] == []


@cases(
    "kind, place",
    [
        ("Topology", ("specs",)),
        ("Network", ("metadata", "label")),
        ("LocalQueue", ("spec", "queue")),
        ("ClusterQueue", (*FLAVOR, "quota")),
        ("JobSet", (*JOB, "completion")),
        ("JobSet", (*JOB, *CONTAINER, "gpus")),
        ("RayCluster", (*WORKER, *CONTAINER, "gpus")),
        ("PyTorchJob", ("spec", "pytorchReplicaSpecs", "Launcher")),
    ],
)
def test_an_unknown_field(kind, place):
    """At any depth, also in the parts that Kubernetes defines."""
    (found,) = problems_with(kind, place, "any")
    assert found.startswith(f"{written(place[:-1])}: ")
    assert place[-1] in found


@cases(
    "kind, place",
    [
        ("Network", ("metadata",)),
        ("Network", ("spec",)),
        ("AdmissionCheck", ("spec", "controllerName")),
        ("ClusterQueue", (*FLAVOR, "name")),
        ("JobSet", (*JOB, "template")),
        ("RayCluster", (*WORKER, "template")),
        ("RayCluster", (*WORKER, *CONTAINER, "name")),
        ("PyTorchJob", ("spec", "runPolicy")),
    ],
)
def test_a_missing_field(kind, place):
    """Which the API, or Kubernetes, requires."""
    (found,) = problems_with(kind, place, ABSENT)
    assert found.startswith(f"{written(place[:-1])}: ")
    assert place[-1] in found


@cases(
    "kind, place, value, allowed",
    [
        ("RayCluster", ("spec", "rayVersion"), 2.46, "str"),
        ("RayCluster", (*WORKER, "rayStartParams", "num-cpus"), 0, "str"),
        ("RayCluster", (*WORKER, "replicas"), "2", "int"),
        ("RayCluster", (*WORKER, "replicas"), True, "int"),
        ("ClusterQueue", (*FLAVOR, "resources", 0, "nominalQuota"), 1.5, "int | str"),
        ("JobSet", ("spec", "suspend"), "true", "bool"),
        ("JobSet", ("spec", "suspend"), None, "bool"),
        ("JobSet", ("spec", "network"), [], "an object"),
        ("JobSet", ("spec",), None, "an object"),
        ("PyTorchJob", (*MASTER, "restartPolicy"), "Sometimes", "one of Always, ExitCode, Never, OnFailure"),
        ("Topology", ("spec", "levels"), "host", "a list"),
        ("Topology", ("spec", "levels", 0), "host", "an object"),
        ("Network", ("spec", "type"), "L4", "one of Device, L2, L3"),
        ("NodeReadinessRule", ("spec", "enforcementMode"), ["continuous"], "one of bootstrap-only, continuous"),
        ("NodeReadinessRule", ("spec", "conditions", 0, "requiredStatus"), True, "one of False, True, Unknown"),
    ],
)
def test_a_wrong_value(kind, place, value, allowed):
    """Of another type, such as a number that should be a text, or none of those that the API allows."""
    assert problems_with(kind, place, value) == [f"{written(place)}: {value!r} is not {allowed}"]


def test_a_wrong_value_in_a_pod():
    """Kubernetes says so."""
    place = (*WORKER, *CONTAINER, "image")
    assert problems_with("RayCluster", place, 2) == [f"{written(place)}: 2 is not of type 'string', 'null'"]


def test_an_unknown_version():
    """Or an unknown kind."""
    (found,) = problems(OF_KIND["LocalQueue"] | {"apiVersion": "kueue.x-k8s.io/v1alpha1"})
    assert "kind LocalQueue with api version kueue.x-k8s.io/v1alpha1" in found
