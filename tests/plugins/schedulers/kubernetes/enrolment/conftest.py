"""A signer, its API server, and its agents."""

from pathlib import Path

import pytest
from benchmarks.kubernetes_standin import credentials

from muster_plugins.schedulers.kubernetes import rbac
from muster_plugins.schedulers.kubernetes.api import ApiServer, ServiceAccount
from muster_plugins.schedulers.kubernetes.enrolment.applicant import ACCOUNT, AUDIENCE
from muster_plugins.schedulers.kubernetes.enrolment.authority import Authority
from muster_plugins.schedulers.kubernetes.enrolment.enrolling import Enrolment
from muster_plugins.schedulers.kubernetes.enrolment.signer import Signer, serving, token_review

SIGNER = "system:serviceaccount:muster:muster-signer"


@pytest.fixture(scope="session")
def authority_files(live: None, tmp_path_factory) -> Path:
    """A directory with tls.crt and tls.key of an authority, and with server.crt and server.key from it."""
    directory: Path = tmp_path_factory.mktemp("authority")
    made = credentials.make_certificates(directory)
    (directory / "tls.crt").write_bytes(made.authority.read_bytes())
    (directory / "tls.key").write_bytes((directory / "ca.key").read_bytes())
    return directory


@pytest.fixture
def authority(authority_files) -> Authority:
    return Authority.read(authority_files)


@pytest.fixture
def pause_s() -> float:
    """How long an address must wait after an answer: not at all, unless a test is about that."""
    return 0.0


@pytest.fixture
def signer_account(standin) -> Path:
    """The service account of a signer that has the permissions of its manifest and no others."""
    roles = [manifest for manifest in rbac.signer_manifests() if manifest["kind"] == "ClusterRole"]
    standin.add_user(SIGNER, *roles)
    directory: Path = standin.service_account(SIGNER)
    return directory


@pytest.fixture
def signer_tls(authority_files, tmp_path) -> Path:
    """The directory of the signer's own certificate and key."""
    directory: Path = tmp_path / "signer"
    directory.mkdir()
    for end in ("crt", "key"):
        (directory / f"tls.{end}").write_bytes((authority_files / f"server.{end}").read_bytes())
    return directory


@pytest.fixture
async def signer(pause_s, standin, signer_account, signer_tls, authority):
    """The URL of a running signer."""
    server = ApiServer(ServiceAccount(standin.url, signer_account), 10.0)
    signer = Signer(authority, token_review(server), pause_s=pause_s)
    async with serving(signer, "127.0.0.1:0", signer_tls) as url:
        yield url


@pytest.fixture
def new_enrolment(standin, signer, authority_files, tmp_path):
    """What the agent on a node needs to ask the signer: `new_enrolment("n1")`."""

    def make(node: str, *, account: str = ACCOUNT, audience: str = AUDIENCE) -> Enrolment:
        directory = tmp_path / f"tls-of-{node}"
        directory.mkdir()
        token = directory / "token"
        token.write_text(standin.pod_token(account, node, audience))
        return Enrolment(signer, authority_files / "tls.crt", token, directory)

    return make
