"""How the coordinator finds the API server and proves who it is, and what it says when that fails."""

import asyncio
import json
import subprocess
import sys

import pytest
from benchmarks.kubernetes_standin.access import CLUSTER_ADMIN
from benchmarks.kubernetes_standin.credentials import make_certificates
from benchmarks.kubernetes_standin.faults import Fault
from benchmarks.kubernetes_standin.server import StandIn

from muster import Effect
from muster.config import Config, Settings
from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes import connection, plugin

ACCOUNT = "system:serviceaccount:muster:muster-coordinator"


@pytest.fixture
def in_a_pod(standin, new_coordinator):
    """A coordinator with a service account."""
    standin.add_node("n1")
    standin.add_user(ACCOUNT, CLUSTER_ADMIN)
    directory = standin.service_account(ACCOUNT)
    return new_coordinator({}, api=standin.url, service_account=str(directory))


async def test_a_pod_s_token_is_read_for_each_request(standin, in_a_pod):
    """The kubelet replaces it about once an hour, and the old one expires."""
    assert (await in_a_pod.tell()).effect is Effect.DONE
    standin.replace_token(ACCOUNT)
    standin.service_account(ACCOUNT)
    standin.requests.clear()
    assert (await in_a_pod.tell()).effect is Effect.DONE
    assert all(request.code != 401 for request in standin.requests)


async def test_a_token_that_has_expired_is_a_failure(standin, in_a_pod):
    """That says so, without the token."""
    assert (await in_a_pod.tell()).effect is Effect.DONE
    standin.replace_token(ACCOUNT)
    outcome = await in_a_pod.tell()
    assert outcome.effect is Effect.FAILED
    expected = "node n1: HTTP 401: Unauthorized; the token or certificate has expired, or belongs to another cluster"
    assert outcome.detail == expected


async def test_a_kubeconfig_is_read_again_when_its_token_has_expired(standin, coordinator):
    """Whoever renews it has not to restart the coordinator."""
    assert (await coordinator.tell()).effect is Effect.DONE
    standin.replace_token("kubernetes-admin")
    assert (await coordinator.tell()).effect is Effect.FAILED
    standin.kubeconfig()
    assert (await coordinator.tell()).effect is Effect.DONE


async def test_a_program_that_a_kubeconfig_names_is_asked_for_a_token(standin, new_coordinator, tmp_path):
    """And again when that token has expired, as the kubeconfigs of clouds have it; once, however many need it."""
    nodes = [f"n{number}" for number in range(5)]
    for node in nodes:
        standin.add_node(node)
    path, asked = tmp_path / "kubeconfig", tmp_path / "asked"
    config = json.loads(standin.kubeconfig().read_text())
    token = tmp_path / "token"
    token.write_text(config["users"][0]["user"]["token"])
    print_credential = (
        "import json, sys; print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', "
        "'kind': 'ExecCredential', 'status': {'token': open(sys.argv[1]).read()}})); "
        "open(sys.argv[2], 'a').write('once ')"
    )
    program = {"command": sys.executable, "args": ["-c", print_credential, str(token), str(asked)]}
    config["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", **program}}
    path.write_text(json.dumps(config))
    coordinator = new_coordinator({"kubeconfig": str(path)})
    assert (await coordinator.tell()).effect is Effect.DONE
    standin.replace_token("kubernetes-admin")
    token.write_text(json.loads(standin.kubeconfig().read_text())["users"][0]["user"]["token"])
    outcomes = await asyncio.gather(*(coordinator.tell(node=node) for node in nodes))
    assert {outcome.effect for outcome in outcomes} == {Effect.DONE}
    assert asked.read_text() == "once once "


async def test_another_context_can_be_chosen(standin, new_coordinator):
    """One that is not there is named."""
    standin.add_node("n1")
    kubeconfig = str(standin.kubeconfig())
    assert (await new_coordinator({"kubeconfig": kubeconfig, "context": "stand-in"}).tell()).effect is Effect.DONE
    with pytest.raises(Unavailable, match=r"cannot use .* object with name other in .*contexts"):
        await new_coordinator({"kubeconfig": kubeconfig, "context": "other"}).survey()


BROKEN = {
    "nothing": ("", "cannot use"),
    "no YAML": ("{", "cannot use"),
    "a word": ("kubeconfig", "cannot use"),
    "a list": ("[1, 2]", "cannot use"),
    "no context": ('{"clusters": [], "users": [], "contexts": []}', "Expected key current-context"),
    "bytes": (b"\xff\xfe\x00\x01", "cannot use"),
}


@pytest.mark.parametrize(("content", "said"), BROKEN.values(), ids=BROKEN)
async def test_a_kubeconfig_that_is_none_is_refused(new_coordinator, tmp_path, content, said):
    """By the setting's name and the file's, at the first survey."""
    path = tmp_path / "kubeconfig"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    coordinator = new_coordinator({"kubeconfig": str(path)})
    with pytest.raises(Unavailable, match=f"plugins.kubernetes.actor.kubeconfig: .*{path}.*") as raised:
        await coordinator.survey()
    assert said in str(raised.value)
    assert (await coordinator.tell()).effect is Effect.FAILED


async def test_no_token_gets_into_an_error(standin, new_coordinator, tmp_path):
    """Not even one that stands where it should not."""
    config = json.loads(standin.kubeconfig().read_text())
    config["users"] = [{"name": "kubernetes-admin", "token": "secret-token"}]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    with pytest.raises(Unavailable, match="Expected key user in") as raised:
        await new_coordinator({"kubeconfig": str(path)}).survey()
    assert "secret-token" not in str(raised.value)


async def test_a_kubeconfig_that_is_not_there_is_refused(new_coordinator, tmp_path):
    """In place of asking nobody."""
    with pytest.raises(Unavailable, match=r"actor\.kubeconfig: there is no file .*/absent"):
        await new_coordinator({"kubeconfig": str(tmp_path / "absent")}).survey()


@pytest.fixture
def as_user(standin, new_coordinator, tmp_path):
    """Makes a coordinator with a kubeconfig whose user is described so."""

    def make(**user):
        config = json.loads(standin.kubeconfig().read_text())
        config["users"][0]["user"] = user
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        return new_coordinator({"kubeconfig": str(path)})

    return make


def program(command, *arguments):
    """The program that gives the user of a kubeconfig a token."""
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": [*arguments]}


async def test_a_program_that_fails_is_named(as_user):
    """With what it says."""
    coordinator = as_user(exec=program(sys.executable, "-c", "raise SystemExit('log in first')"))
    with pytest.raises(Unavailable, match="log in first"):
        await coordinator.survey()


async def test_a_program_that_is_not_there_is_named(as_user):
    """As in an image that brings no programs of clouds."""
    with pytest.raises(Unavailable, match=r"kubeconfig: cannot use .*: no-such-plugin: No such file or directory$"):
        await as_user(exec=program("no-such-plugin")).survey()


async def test_a_program_that_does_not_end_is_started_once(standin, as_user, tmp_path, monkeypatch):
    """As when it waits for somebody to log in. Who has to wait for it says so, and goes on when it has ended."""
    monkeypatch.setattr(connection, "_OPENING_S", 0.5)
    token = json.loads(standin.kubeconfig().read_text())["users"][0]["user"]["token"]
    started, login = tmp_path / "started", tmp_path / "login"
    script = (
        "echo once >>$0; until [ -e $1 ]; do sleep 0.05; done; "
        """echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", """
        """"status": {"token": "'$2'"}}'"""
    )
    coordinator = as_user(exec=program("sh", "-c", script, str(started), str(login), token))
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"no credentials after 0\.5 s: end the program that .* names, or"):
            await coordinator.survey()
    login.touch()
    assert (await coordinator.survey()).can_cordon
    assert started.read_text() == "once\n"


async def test_a_key_of_another_certificate_is_refused(as_user, tmp_path):
    """Before anybody is asked anything."""
    ours, others = tmp_path / "ours", tmp_path / "others"
    ours.mkdir()
    others.mkdir()
    certificate, key = make_certificates(ours).server, make_certificates(others).key
    coordinator = as_user(**{"client-certificate": str(certificate), "client-key": str(key)})
    with pytest.raises(Unavailable, match=r"cannot use the certificates for https://127\.0\.0\.1:[0-9]+: .*mismatch"):
        await coordinator.survey()


async def test_a_new_authority_is_trusted_as_soon_as_its_certificate_is_there(standin, coordinator):
    """Nobody has to restart the coordinator when the authority of the cluster is replaced."""
    assert (await coordinator.tell()).effect is Effect.DONE
    await standin.stop()
    make_certificates(standin.authority.parent)
    await standin.start()
    outcome = await coordinator.tell()
    assert (outcome.effect, "its certificate is not trusted" in outcome.detail) == (Effect.FAILED, True)
    assert (await coordinator.tell()).effect is Effect.DONE


async def test_a_waiting_request_is_answered_while_others_connect_again(standin, coordinator):
    """Since their credentials were not taken any more."""
    standin.add_node("n2")
    assert (await coordinator.tell()).effect is Effect.DONE
    standin.order(Fault.SLOW, verb="get", path="*/n2", seconds=0.5)
    slow = asyncio.create_task(coordinator.tell(node="n2"))
    while not any(request.path.endswith("/n2") for request in standin.requests):
        await asyncio.sleep(0.01)
    standin.order(Fault.UNAUTHORIZED, verb="get", path="*/n1")
    assert (await coordinator.tell("PROBATION")).effect is Effect.DONE
    assert not slow.done()
    assert (await slow).effect is Effect.DONE


async def test_outside_of_a_cluster_a_kubeconfig_is_asked_for(new_coordinator, monkeypatch):
    """Where there is neither."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Unavailable, match=r"this is not a pod.*set plugins\.kubernetes\.actor\.kubeconfig"):
        await new_coordinator({}).survey()


async def test_a_server_of_another_authority_does_not_get_the_token(standin, new_coordinator, tmp_path):
    """Its certificate is checked first."""
    stranger = StandIn(tmp_path)
    (tmp_path / "token").write_text("secret-token")
    assert stranger.authority == tmp_path / "ca.crt"
    outcome = await new_coordinator({}, api=standin.url, service_account=str(tmp_path)).tell()
    assert outcome.effect is Effect.FAILED
    assert f"no answer from {standin.url}: its certificate is not trusted: " in outcome.detail
    assert "secret-token" not in outcome.detail
    assert standin.requests == []


async def test_a_certificate_that_is_none_is_a_failure(in_a_pod, standin):
    """As is one that is not there."""
    authority = standin.service_account(ACCOUNT) / "ca.crt"
    authority.write_text("none")
    assert f"{authority} does not hold a certificate" in (await in_a_pod.tell()).detail
    authority.unlink()
    assert f"{authority}: No such file or directory" in (await in_a_pod.tell()).detail


async def test_nothing_is_asked_unless_it_is_enabled(transition):
    """Who has other actors has no answer from this one."""
    config = Config(Settings())
    assert await plugin.muster_survey(config) is None
    assert await plugin.muster_transition(config, transition()) is None
    await plugin.muster_close(config)


WITHOUT_THE_CLIENT = """
import asyncio, sys
sys.modules["kubernetes_asyncio"] = None
from muster.config import Config, Settings
from muster_plugins.schedulers.kubernetes import plugin
table = {"plugins": {"kubernetes": {"enabled": True, "actor": {"enabled": len(sys.argv) > 1}}}}
config = Config(Settings.model_validate(table))
print(len(plugin.muster_idle_probes(config)), asyncio.run(plugin.muster_survey(config)))
"""


@pytest.mark.usefixtures("live")
def test_the_client_is_an_extra():
    """An agent does without it, and a coordinator that needs it says how to get it."""
    agent = subprocess.run([sys.executable, "-c", WITHOUT_THE_CLIENT], capture_output=True, text=True, check=True)
    assert agent.stdout == "1 None\n"
    command = [sys.executable, "-c", WITHOUT_THE_CLIENT, "acts"]
    coordinator = subprocess.run(command, capture_output=True, text=True, check=False)
    assert coordinator.stderr.endswith("pip install 'gpu-muster[kubernetes]'\n")
