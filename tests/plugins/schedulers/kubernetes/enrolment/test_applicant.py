"""For which node a token gets a certificate, by the API server's review of the token."""

import json

import pytest
from tests.cases import cases

from muster_plugins.schedulers.kubernetes.enrolment.applicant import ACCOUNT, AUDIENCE, NODE_KEY, NotEntitled, node_of


def review(**changes) -> bytes:
    """The review of a token of the agent's pod on n1, with changes."""
    user = {"username": ACCOUNT, "extra": {NODE_KEY: ["n1"]}} | changes.pop("user", {})
    status = {"authenticated": True, "audiences": [AUDIENCE], "user": user}
    return json.dumps({"kind": "TokenReview", "status": status | changes}).encode()


@cases("node", ["n1", "0", "gke-pool-1a2b", "ip-10-0-0-1.ec2.internal", "n" * 253])
def test_the_node_is_that_of_the_token(node):
    """As the API server names it, with any valid name."""
    assert node_of(review(user={"extra": {NODE_KEY: [node]}})) == node


@cases(
    ("changes", "why"),
    [
        ({"authenticated": False}, "not valid"),
        ({"authenticated": False, "audiences": [], "user": {}}, "not valid"),
        ({"audiences": []}, "audience"),
        ({"audiences": ["https://kubernetes.default.svc"]}, "audience"),
        ({"user": {"username": "system:serviceaccount:default:muster-agent"}}, "is not"),
        ({"user": {"username": "system:serviceaccount:muster:muster-coordinator"}}, "is not"),
        ({"user": {"username": "system:node:n1"}}, "is not"),
        ({"user": {"extra": {}}}, "names no node"),
        ({"user": {"extra": {NODE_KEY: []}}}, "names no node"),
        ({"user": {"extra": {NODE_KEY: ["n1", "n2"]}}}, "names no node"),
        ({"user": {"extra": {"authentication.kubernetes.io/pod-name": ["n1"]}}}, "names no node"),
    ],
)
def test_other_tokens_get_no_certificate(changes, why):
    """Tokens of other accounts, for other audiences, or without a node."""
    with pytest.raises(NotEntitled, match=why):
        node_of(review(**changes))


@cases("node", ["coordinator", "", "+", "#", "a/b", "n1\n", "n1\x00", "n1,CN=n2", "N1", "-n1", "n1-", "é", "n" * 254])
def test_names_that_mean_more_at_the_broker_are_refused(node):
    """Wildcards, levels of topics, and the coordinator's account."""
    with pytest.raises(NotEntitled, match="cannot be the name"):
        node_of(review(user={"extra": {NODE_KEY: [node]}}))


@cases("answer", [b"", b"[]", b"{}", b'{"status": 3}', b'{"status": {"user": {"extra": {"a": "b"}}}}'])
def test_any_other_answer_is_a_refusal(answer):
    """An answer that is no TokenReview gets no certificate, and does not crash the signer."""
    with pytest.raises(NotEntitled, match="no TokenReview"):
        node_of(answer)
