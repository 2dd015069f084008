"""Whether a pod has GPUs of a node, asked of a server that takes the question as strictly as the API server does."""

import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.cases import cases

from muster.check import Idleness, IdleProbe
from muster.config import Config, Settings
from muster.errors import SettingsError
from muster_plugins.schedulers.kubernetes.api import MOST_BYTES, Unanswered
from muster_plugins.schedulers.kubernetes.plugin import muster_configure, muster_idle_probes

IDLE, BUSY = Idleness.IDLE, Idleness.BUSY
OWN: frozenset[int] = frozenset()


def pod(
    uid: str,
    *requests: dict[str, str],
    node: str = "n1",
    phase: str = "Running",
    init: bool = False,
    claims: Any = None,
) -> Any:
    """A pod as the API server tells of it, as far as that matters, with a container for each of `requests`."""
    containers = [{"name": f"c{index}", "resources": {"requests": asked}} for index, asked in enumerate(requests)]
    kinds = {"initContainers": containers, "containers": [{"name": "main"}]} if init else {"containers": containers}
    return {
        "metadata": {"uid": uid, "name": uid, "namespace": "default"},
        "spec": {"nodeName": node, **kinds, **({"resourceClaims": claims} if claims else {})},
        "status": {"phase": phase},
    }


@dataclass
class Cluster:
    """What the server says: to whom, about which pods; `body` takes the place of the list, `hangs` of any answer."""

    directory: Path
    token: str = "secret-1"
    pods: list[Any] = field(default_factory=list)
    forbidden: bool = False
    body: bytes | None = None
    hangs: Event | None = None
    api: str = ""

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        if authorization != f"Bearer {self.token}":
            return 401, json.dumps({"kind": "Status", "message": "Unauthorized"}).encode()
        if self.forbidden:
            return 403, json.dumps({"kind": "Status", "message": 'pods is forbidden: User "muster"'}).encode()
        parts = urlsplit(path)
        assert parts.path == "/api/v1/pods"
        (selector,) = parse_qs(parts.query, strict_parsing=True)["fieldSelector"]
        chosen = [pod for pod in self.pods if all(self._meets(pod, term) for term in selector.split(","))]
        return 200, self.body or json.dumps({"kind": "PodList", "items": chosen}).encode()

    def _meets(self, pod: Any, term: str) -> bool:
        """A term of a field selector: `field=value` or `field!=value`."""
        name, _, value = term.partition("=")
        section, key = name.removesuffix("!").split(".")
        return (pod[section][key] == value) is not name.endswith("!")

    def probe(self, **settings: Any) -> Idleness:
        """What the plugin's probe says."""
        table = {"enabled": True, "api": self.api, "service_account": str(self.directory), "node": "n1"}
        (probe,) = probes(**{**table, "pod_uid": "own", **settings})
        return probe.probe(OWN)


def probes(**table: Any) -> list[IdleProbe]:
    return [*muster_idle_probes(Config(Settings.model_validate({"plugins": {"kubernetes": table}})))]


@pytest.fixture(scope="module")
def certificate(live: None, tmp_path_factory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key; it is its own authority."""
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "ca.crt", directory / "key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kubernetes",
         "-addext", "subjectAltName = IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return certificate, key


@pytest.fixture
def cluster(live: None, tmp_path, certificate) -> Iterator[Cluster]:
    """A cluster with no pod but the agent's, and a service account for it."""
    cluster = Cluster(tmp_path, pods=[OWN_POD])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if cluster.hangs:
                cluster.hangs.wait(30)
                return
            status, body = cluster.answer(self.path, self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that hang up are what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    cluster.api = f"https://127.0.0.1:{server.server_address[1]}"
    (tmp_path / "token").write_text("secret-1\n")
    (tmp_path / "ca.crt").write_bytes(certificate[0].read_bytes())
    yield cluster
    if cluster.hangs:
        cluster.hangs.set()
    server.shutdown()
    thread.join()
    server.server_close()


GPU = {"nvidia.com/gpu": "8", "cpu": "4"}
OWN_POD = pod("own", GPU)

PODS = {
    "without a GPU": ([pod("a", {"cpu": "4"}, {})], IDLE),
    "with GPUs": ([pod("a", {"cpu": "1"}, GPU)], BUSY),
    "with no GPU": ([pod("a", {"nvidia.com/gpu": "0"})], IDLE),
    "with a slice of one": ([pod("a", {"nvidia.com/mig-1g.5gb": "1"})], BUSY),
    "with a share of one": ([pod("a", {"nvidia.com/gpu.shared": "1"})], BUSY),
    "with one for its start": ([pod("a", GPU, init=True)], BUSY),
    "with other hardware": ([pod("a", {"nvidia.com/gpudirect": "1", "amd.com/gpu": "1"})], IDLE),
    "waiting for its image": ([pod("a", GPU, phase="Pending")], BUSY),
    "that nobody hears of": ([pod("a", GPU, phase="Unknown")], BUSY),
    "that has ended": ([pod("a", GPU, phase="Succeeded"), pod("b", GPU, phase="Failed")], IDLE),
    "on another node": ([pod("a", GPU, node="n2")], IDLE),
    "of the agent": ([], IDLE),
    "with a claim": ([pod("a", claims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])], BUSY),
}


@pytest.mark.parametrize(("pods", "expected"), PODS.values(), ids=PODS)
def test_a_node_is_busy_while_a_pod_there_has_gpus(cluster, pods, expected):
    """Pods of this node that have not ended count, except for the agent's own."""
    cluster.pods = [OWN_POD, *pods]
    assert cluster.probe() is expected


@pytest.mark.parametrize(("uid", "said"), [("own", "no pods at all"), (None, "no pods at all"), ("x", "without pod x")])
def test_a_node_of_another_name_is_not_idle(cluster, uid, said):
    """The server takes any name, and knows no pods of a node that is not there."""
    node = "n1" if uid == "x" else "n3"
    with pytest.raises(Unanswered, match=f"{said} on node {node}: is this its name in Kubernetes"):
        cluster.probe(pod_uid=uid, node=node)


def test_what_stands_for_a_gpu_can_be_set(cluster):
    """Other vendors have other names for theirs."""
    cluster.pods += [pod("a", {"amd.com/gpu": "1"})]
    assert cluster.probe() is IDLE
    assert cluster.probe(gpu_resources=["amd.com/*"]) is BUSY


def test_the_token_is_read_again(cluster):
    """The kubelet replaces it about once an hour, and the old one expires."""
    assert cluster.probe() is IDLE
    cluster.token = "secret-2"
    with pytest.raises(Unanswered, match="HTTP 401: Unauthorized"):
        cluster.probe()
    (cluster.directory / "token").write_text("secret-2")
    assert cluster.probe() is IDLE


def test_who_may_not_list_pods_learns_why(cluster):
    """The words of the server name the missing right."""
    cluster.forbidden = True
    with pytest.raises(Unanswered, match='HTTP 403: pods is forbidden: User "muster"'):
        cluster.probe()


def test_a_server_that_does_not_answer_is_given_up_within_a_second(cluster):
    """A probe has no more than that; this server would take half a minute."""
    cluster.hangs = Event()
    began = time.monotonic()
    with pytest.raises(Unanswered, match="did not answer within"):
        cluster.probe()
    assert time.monotonic() - began < 5


def test_a_server_that_is_not_there_is_unknown(cluster):
    """Nobody listens."""
    with pytest.raises(Unanswered, match=r"^no answer from the API server: Connection refused$"):
        cluster.probe(api="https://127.0.0.1:1")


def test_an_address_of_ipv6_is_no_host_with_a_port(cluster):
    """Nobody listens there, which only who takes it for what it is can find out."""
    with pytest.raises(Unanswered, match=r"Connection refused|Cannot assign|Address family"):
        cluster.probe(api="https://[::1]")


def test_a_server_of_another_authority_does_not_get_the_token(cluster, tmp_path_factory):
    """Its certificate is checked first."""
    stranger = tmp_path_factory.mktemp("stranger")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stranger",
         "-keyout", stranger / "key", "-out", stranger / "ca.crt"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    (cluster.directory / "ca.crt").write_bytes((stranger / "ca.crt").read_bytes())
    with pytest.raises(Unanswered, match="its certificate is not trusted: "):
        cluster.probe()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "not a list of pods: the answer: Invalid JSON"),
        (b'{"items": [{"metadata": {"uid": "a"}', "not a list of pods: the answer: Invalid JSON"),
        (b'{"items": null}', "not a list of pods: items"),
        (b'{"items": [{"metadata": {"uid": "a"}}]}', "not a list of pods: items.0.spec: Field required"),
        (b"[" * 100_000, "not a list of pods"),
        (b" " * (MOST_BYTES + 1), "an answer of more than"),
    ],
    ids=["no JSON", "half of it", "nothing", "no spec", "deep", "endless"],
)
def test_an_answer_that_is_none_is_unknown(cluster, body, said):
    """What is wrong with it is named."""
    cluster.body = body
    with pytest.raises(Unanswered, match=said):
        cluster.probe()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("token", None, "token"),
        ("token", "", "does not hold a token"),
        ("token", "sec ret", "does not hold a token"),
        ("token", "sécret", "does not hold a token"),
        ("ca.crt", None, "ca.crt"),
        ("ca.crt", "none", "ca.crt does not hold a certificate"),
        ("ca.crt", "", "ca.crt does not hold a certificate"),
    ],
)
def test_a_service_account_that_is_none_is_named(cluster, file, content, said):
    """By the file that is missing or wrong, and never by what is in it."""
    (cluster.directory / file).unlink()
    if content is not None:
        (cluster.directory / file).write_text(content)
    with pytest.raises(Unanswered, match=said) as raised:
        cluster.probe()
    assert "ret" not in str(raised.value)


def test_the_server_of_a_pod_is_the_one_that_its_environment_names(cluster, monkeypatch):
    """Unless a setting does."""
    for what in ("HOST", "PORT"):
        monkeypatch.delenv(f"KUBERNETES_SERVICE_{what}", raising=False)
    with pytest.raises(Unanswered, match="this is not a pod"):
        cluster.probe(api=None)
    parts = urlsplit(cluster.api)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", parts.hostname or "")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(parts.port))
    assert cluster.probe(api=None) is IDLE


def test_it_is_off_unless_it_is_enabled():
    """A node without Kubernetes is not asked about, and its name there is its name here unless it is said."""
    assert probes() == []
    (probe,) = probes(enabled=True, interval_s=5)
    assert probe.interval_s == 5


@cases(
    "table",
    [
        {"api": "http://10.0.0.1"},
        {"api": "https://"},
        {"api": "https://10.0.0.1/k8s/clusters/c1"},
        {"api": "https://10.0.0.1:70000"},
        {"api": "https://me:secret@10.0.0.1"},
        {"node": "n1,metadata.name=x"},
        {"gpu_resources": []},
    ],
)
def test_wrong_settings_are_refused(table):
    """At the start."""
    with pytest.raises(SettingsError, match=f"plugins.kubernetes.{next(iter(table))}"):
        muster_configure(Config(Settings.model_validate({"plugins": {"kubernetes": table}})))
