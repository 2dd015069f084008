"""Where the stand-in's scheduler puts pods: as kube-scheduler would, by what it knows."""

import pytest
from benchmarks.kubernetes_standin.objects import node, pod
from benchmarks.kubernetes_standin.scheduler import fits

TAINT = {"key": "example.com/a", "value": "x", "effect": "NoSchedule"}


def waiting(**spec):
    """A pod for four GPUs without a node."""
    item = pod("work", "", gpus=4)
    return item | {"spec": item["spec"] | spec}


def running(gpus):
    return pod("other", "n1", gpus=gpus) | {"metadata": {"name": "other", "labels": {"app": "work"}}}


SHUNS = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "work"}}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [SHUNS]}}


@pytest.mark.parametrize(
    ("spec", "place", "others", "expected"),
    [
        ({}, {}, [], True),
        ({}, {"unschedulable": True}, [], False),
        ({}, {"taints": [TAINT]}, [], False),
        ({}, {"taints": [TAINT | {"effect": "PreferNoSchedule"}]}, [], True),
        ({"tolerations": [{"operator": "Exists"}]}, {"taints": [TAINT]}, [], True),
        ({"tolerations": [{"key": "example.com/a", "operator": "Exists"}]}, {"taints": [TAINT]}, [], True),
        ({"tolerations": [{"key": "example.com/b", "operator": "Exists"}]}, {"taints": [TAINT]}, [], False),
        ({"tolerations": [{"key": "example.com/a", "value": "x"}]}, {"taints": [TAINT]}, [], True),
        ({"tolerations": [{"key": "example.com/a", "value": "y"}]}, {"taints": [TAINT]}, [], False),
        ({"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, {"taints": [TAINT]}, [], False),
        ({"nodeSelector": {"pool": "a"}}, {"labels": {"pool": "a"}}, [], True),
        ({"nodeSelector": {"pool": "a"}}, {"labels": {"pool": "b"}}, [], False),
        ({}, {}, [running(4)], True),
        ({}, {}, [running(5)], False),
        ({}, {"gpus": 0}, [], False),
        ({"affinity": APART}, {}, [], True),
        ({"affinity": APART}, {}, [running(0)], False),
    ],
)
def test_a_pod_fits_a_node(spec, place, others, expected):
    """Cordon, taints, labels, GPUs and other pods, each by itself."""
    assert fits(waiting(**spec), node("n1", **place), others) is expected
