"""The stand-in reviews tokens as TokenReview of authentication.k8s.io/v1 does."""

import json

import pytest

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
AGENT = "system:serviceaccount:muster:muster-agent"
SERVER = "https://kubernetes.default.svc"


@pytest.fixture
def reviewed(client):
    """The status of a TokenReview by the administrator, for these audiences."""

    async def review(token: str, *audiences: str):
        spec = {"token": token, **({"audiences": [*audiences]} if audiences else {})}
        status, body = await client.ask("POST", PATH, {"spec": spec})
        assert status == 201
        return body["status"]

    return review


async def test_a_pod_s_token_names_its_node(standin, reviewed):
    """If the request names the token's audience, alone or among others."""
    token = standin.pod_token(AGENT, "n1", "signer")
    status = await reviewed(token, "signer", "other")
    assert (status["authenticated"], status["audiences"]) == (True, ["signer"])
    assert status["user"]["username"] == AGENT
    assert status["user"]["extra"]["authentication.kubernetes.io/node-name"] == ["n1"]


async def test_a_token_is_for_one_audience(standin, client, reviewed):
    """A token for the signer is not valid at the server, in reviews and in requests, and the other way round."""
    token = standin.pod_token(AGENT, "n1", "signer")
    assert "authenticated" not in await reviewed(token)
    assert "authenticated" not in await reviewed(token, "other")
    headers = {"Authorization": f"Bearer {token}"}
    async with client.session.get(f"{standin.url}/api/v1/nodes", headers=headers) as response:
        assert response.status == 401
    own = json.loads(standin.kubeconfig().read_text())["users"][0]["user"]["token"]
    assert (await reviewed(own))["audiences"] == [SERVER]
    assert "authenticated" not in await reviewed(own, "signer")


async def test_an_invalid_token_has_no_user(reviewed):
    """The review succeeds, and contains the reason."""
    assert await reviewed("made-up", "signer") == {"user": {}, "error": "[invalid bearer token]"}


async def test_a_review_needs_a_token_and_the_permission(standin, client):
    """Only some users may learn to whom a token belongs."""
    assert (await client.ask("POST", PATH, {"spec": {}}))[0] == 400
    standin.add_user("nobody")
    assert (await client.ask("POST", PATH, {"spec": {"token": "x"}}, user="nobody"))[0] == 403
