"""With the permissions that are generated everything works, and without any one of them it is said what is missing."""

import re

import kubernetes_validate
import pytest
import structlog
import yaml

from muster import Effect, NodeHealthReport
from muster.errors import Unavailable
from muster.model import Health
from muster_plugins.schedulers.kubernetes import rbac
from muster_plugins.schedulers.kubernetes.calls import (
    CREATE_EVENT,
    LIST_NODES,
    OF_THE_COORDINATOR,
    PATCH_NODE,
    PATCH_STATUS,
    READ_NODE,
)

ACCOUNT = "system:serviceaccount:muster:muster-coordinator"


def roles(manifests):
    return [manifest for manifest in manifests if manifest["kind"] in {"Role", "ClusterRole"}]


@pytest.fixture
def limited(standin, new_coordinator, monkeypatch):
    """Makes a coordinator in a pod that is allowed these calls only."""
    standin.add_node("n1")

    def make(calls):
        monkeypatch.setattr(rbac, "OF_THE_COORDINATOR", tuple(calls))
        standin.add_user(ACCOUNT, *roles(rbac.coordinator_manifests()))
        return new_coordinator({}, api=standin.url, service_account=str(standin.service_account(ACCOUNT)))

    return make


async def test_what_is_generated_is_enough(standin, limited):
    """For all that a coordinator does."""
    coordinator = limited(OF_THE_COORDINATOR)
    assert (await coordinator.survey()).can_cordon
    for after in ("CORDONED", "PROBATION", "IN_SERVICE"):
        assert (await coordinator.tell(after)).effect is Effect.DONE
    assert {request.code for request in standin.requests} <= {200, 201, 409}


@pytest.mark.parametrize("missing", [READ_NODE, PATCH_NODE, CREATE_EVENT], ids=str)
async def test_what_is_missing_is_named(limited, missing):
    """At the start by the survey, and by the action that needs it."""
    coordinator = limited(call for call in OF_THE_COORDINATOR if call is not missing)
    survey = await coordinator.survey()
    assert not survey.can_cordon
    assert survey.problem == f"{survey.summary} does not let us {missing}: grant it by RBAC"
    outcome = await coordinator.tell()
    assert outcome.effect is (Effect.DONE if missing is CREATE_EVENT else Effect.FAILED)
    assert f'User "{ACCOUNT}" cannot {missing.verb} resource "{missing.resource}"' in outcome.detail
    assert outcome.detail.endswith(f"grant it by RBAC: {missing}")


async def test_who_may_not_write_conditions_is_told(limited):
    """By each survey, and once in the log, however often the health of a node is shown."""
    coordinator = limited(call for call in OF_THE_COORDINATOR if call is not PATCH_STATUS)
    survey = await coordinator.survey()
    assert survey.problem == f"{survey.summary} does not let us {PATCH_STATUS}: grant it by RBAC"
    with structlog.testing.capture_logs() as logged:
        for at in (1.0, 2.0):
            await coordinator.show(NodeHealthReport(node="n1", at=at, health=Health.HEALTHY))
    (line,) = logged
    assert re.search(r'cannot patch resource "nodes/status" .*grant it by RBAC', line["reason"])


async def test_who_may_not_list_nodes_is_no_actor(limited):
    """A survey without nodes would look as if all had left."""
    coordinator = limited(call for call in OF_THE_COORDINATOR if call is not LIST_NODES)
    with pytest.raises(Unavailable, match=r'cannot list resource "nodes" .*; grant it by RBAC: list nodes'):
        await coordinator.survey()


@pytest.mark.parametrize("make", [rbac.coordinator_manifests, rbac.agent_manifests, rbac.reservation_manifests])
def test_the_manifests_are_valid(make):
    """By the schema of the oldest Kubernetes that they are for and by that of a new one."""
    for manifest in yaml.safe_load_all(rbac.as_yaml(make())):
        for version in ("1.30", "1.34"):
            kubernetes_validate.validate(manifest, version, strict=True)
