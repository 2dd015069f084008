"""Who may do what in the cluster: what the plugin's calls need, and no more than that."""

import pytest

from muster_plugins.schedulers.kubernetes.calls import (
    OF_AN_AGENT,
    OF_AN_AGENT_THAT_RESERVES,
    OF_ONE_OF_SEVERAL_COORDINATORS,
    OF_THE_COORDINATOR,
    OF_THE_SIGNER,
)

ACTING = ("dry-run", "enforce", "gke-a4", "gke-a3u", "everything")
STANDING_BY = ("standbys", "everything")
RESERVING = ("reservations", "everything")


def granted(manifests, account):
    """(verb, resource, group, namespace) of all that is bound to the service account; no namespace is all of them."""
    return {
        (verb, resource, group, binding["metadata"].get("namespace"))
        for (kind, _), binding in manifests.items()
        if kind.endswith("RoleBinding")
        and {"kind": "ServiceAccount", "name": account, "namespace": "muster"} in binding["subjects"]
        for rule in manifests[binding["roleRef"]["kind"], binding["roleRef"]["name"]]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(calls):
    return {(call.verb, call.resource, call.group, call.namespace) for call in calls}


def test_agent(variant, manifests):
    """It lists pods; with reservations, it changes its node."""
    calls = (*OF_AN_AGENT, *OF_AN_AGENT_THAT_RESERVES) if variant in RESERVING else OF_AN_AGENT
    assert granted(manifests, "muster-agent") == needed(calls)


def test_coordinator(variant, manifests):
    """It acts on nodes only where it is installed to act, and writes a Lease only where it has standbys."""
    calls = (
        *(OF_THE_COORDINATOR if variant in ACTING else ()),
        *(OF_ONE_OF_SEVERAL_COORDINATORS if variant in STANDING_BY else ()),
    )
    assert granted(manifests, "muster-coordinator") == needed(calls)


def test_signer(manifests):
    """It may review tokens, and nothing else: it cannot even read its own Secrets."""
    assert granted(manifests, "muster-signer") == needed(OF_THE_SIGNER)


def test_who_may_nothing_has_no_token(variant, pods):
    """A token is mounted only where there is something to ask."""
    mounted = {name for name, pod in pods.items() if pod["automountServiceAccountToken"]}
    asks = variant in (*ACTING, *STANDING_BY)
    assert mounted == {"muster-agent", "muster-signer"} | ({"muster-coordinator"} if asks else set())


def test_no_right_is_for_everything_or_for_secrets(manifests):
    """Every rule names what it is about, and nobody else is bound to it."""
    for (kind, _), document in manifests.items():
        for rule in document["rules"] if kind.endswith("Role") else ():
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"secrets", "pods/exec", "pods/eviction"} & set(rule["resources"])
        for subject in document.get("subjects", ()):
            assert subject["name"] in ("muster-agent", "muster-coordinator", "muster-signer")


@pytest.mark.parametrize("variant", ["reservations"], indirect=True)
def test_an_agent_is_held_to_its_own_node(manifests):
    """By a policy about the account that its pods run under, which is enforced and fails closed."""
    policy = manifests["ValidatingAdmissionPolicy", "muster-agent-reservations"]["spec"]
    binding = manifests["ValidatingAdmissionPolicyBinding", "muster-agent-reservations"]["spec"]
    assert binding == {"policyName": "muster-agent-reservations", "validationActions": ["Deny"]}
    assert policy["failurePolicy"] == "Fail"
    (rule,) = policy["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == (["nodes"], ["UPDATE"])
    (condition,) = policy["matchConditions"]
    assert condition["expression"] == 'request.userInfo.username == "system:serviceaccount:muster:muster-agent"'
    assert "object.metadata.name == variables.ownNode" in [each["expression"] for each in policy["validations"]]
