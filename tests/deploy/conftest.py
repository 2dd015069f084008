"""What the manifests in daemonset/ come to, and what `muster broker check` says of a broker."""

import json
from pathlib import Path

import pytest
from generator.kustomize import Documents, Json, build
from tests.deploy.clients import NODE, OTHER
from tests.muster_process import run_muster

from muster.broker_acl import COORDINATOR

DAEMONSET = Path(__file__).parent.parent.parent / "daemonset"
OPTIONAL = (
    *("reservations", "rdma", "kernel-log", "gke", "gke-gib", "gke-a4", "gke-a3u"),
    *("monitoring", "agent-metrics", "standbys"),
)
"""The components beside those that every overlay has."""

OVERLAYS = ("observe", "dry-run", "enforce", "gke-a4", "gke-a3u")

VARIANTS: dict[str, Json] = {
    **{
        component: {"resources": ["../observe"], "components": [f"../../components/{component}"]}
        for component in OPTIONAL
    },
    **{overlay: {"resources": [f"../{overlay}"]} for overlay in OVERLAYS},
    "everything": {
        "resources": ["../enforce"],
        "components": [f"../../components/{name}" for name in OPTIONAL if name != "gke-a3u"],
    },
}
"""As an overlay of an operator would say it: each component, each overlay, and all components for one kind of node."""


@pytest.fixture(scope="session")
def kustomize():
    """The documents of a kustomization that stands beside the overlays."""
    return lambda kustomization: build(kustomization, DAEMONSET / "overlays" / "mine")


@pytest.fixture(scope="session", params=VARIANTS)
def variant(request) -> str:
    """Each way in which muster is installed, by name."""
    return str(request.param)


@pytest.fixture(scope="session")
def manifests(variant, kustomize) -> Documents:
    """The documents of the variant, by kind and name."""
    made: Documents = kustomize(VARIANTS[variant])
    return made


@pytest.fixture(scope="session")
def pods(manifests) -> dict[str, Json]:
    """By the name of what starts them, the specifications of all pods."""
    found = {name: document for (kind, name), document in manifests.items() if kind in ("DaemonSet", "Deployment")}
    return {name: document["spec"]["template"]["spec"] for name, document in found.items()}


@pytest.fixture(scope="module")
def passwords(tmp_path_factory) -> dict[str, Path]:
    """A file with the password of each account, which is its name."""
    directory = tmp_path_factory.mktemp("passwords")
    for name in (COORDINATOR, NODE, OTHER):
        (directory / name).write_text(f"{name}\n")
    return {name: directory / name for name in (COORDINATOR, NODE, OTHER)}


@pytest.fixture
def checked(tmp_path, passwords):
    """Checks the broker at a URL, with the account of the coordinator or none, and that of `node`: code, verdicts."""

    def check(url: str, node: str | None = None, *, account: str | None = COORDINATOR) -> tuple[int, dict[str, str]]:
        env = {"MUSTER_DATA_DIR": str(tmp_path)}
        if account is not None:
            env |= {"MUSTER_BROKER__USERNAME": account, "MUSTER_BROKER__PASSWORD_FILE": str(passwords[account])}
        of_node = () if node is None else ("--node", node, "--node-password-file", str(passwords[node]))
        done = run_muster("broker", "check", url, *of_node, "--json", env=env, timeout=150)
        assert done.stdout, done.stderr
        assert done.stderr == ""
        return done.returncode, {
            each["check"]: f"{each['verdict']} {each['detail']}" for each in json.loads(done.stdout)
        }

    return check
