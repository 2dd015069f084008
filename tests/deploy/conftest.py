"""What the manifests in daemonset/ come to: as much of kustomize as they use, which neither pip nor apt installs.

And what `muster broker check` says of a broker.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.clients import NODE, OTHER
from tests.muster_process import run_muster

from muster.broker_acl import COORDINATOR

DAEMONSET = Path(__file__).parent.parent.parent / "daemonset"
KNOWN = {"apiVersion", "kind", "resources", "components", "configMapGenerator", "patches", "images"}
MERGED_BY = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
}
"""By the name of a list, the key that its items are told apart by when a patch is merged; other lists are replaced."""

Json = dict[str, Any]
Documents = dict[tuple[str, str], Json]
"""By kind and name."""

OPTIONAL = ("reservations", "rdma", "kernel-log", "gke", "monitoring", "agent-metrics", "standbys")
"""The components that no overlay has by itself."""

VARIANTS: dict[str, Json] = {
    "observe": {"resources": ["../observe"]},
    "dry-run": {"resources": ["../dry-run"]},
    "enforce": {"resources": ["../enforce"]},
    **{
        component: {"resources": ["../observe"], "components": [f"../../components/{component}"]}
        for component in OPTIONAL
    },
    "everything": {
        "resources": ["../enforce"],
        "components": [f"../../components/{name}" for name in OPTIONAL],
    },
}
"""As an overlay of an operator would say it: each overlay, each component beside it, and all of them at once."""


def build(kustomization: Json, directory: Path, documents: Documents | None = None) -> Documents:
    """What `kubectl kustomize` prints for a kustomization in `directory`, without the hashes in names of ConfigMaps.

    A component changes `documents`, those that there are when it is its turn.
    """
    assert kustomization.keys() <= KNOWN, "teach this file what kustomize makes of the rest"
    made = deepcopy(documents or {})
    for name in kustomization.get("resources", ()):
        made |= _resource((directory / name).resolve())
    for name in kustomization.get("components", ()):
        component = (directory / name).resolve()
        made = build(_read(component), component, made)
    for generator in kustomization.get("configMapGenerator", ()):
        _generate(generator, directory, made)
    for patch in kustomization.get("patches", ()):
        _patch(patch, directory, made)
    for image in kustomization.get("images", ()):
        _name_image(image, made)
    return made


def _read(directory: Path) -> Json:
    content: Json = yaml.safe_load((directory / "kustomization.yaml").read_text(encoding="utf-8"))
    return content


def _resource(path: Path) -> Documents:
    if path.is_dir():
        return build(_read(path), path)
    documents = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def _generate(generator: Json, directory: Path, made: Documents) -> None:
    name = generator["name"]
    data = {Path(file).name: (directory / file).read_text(encoding="utf-8") for file in generator.get("files", ())}
    data |= dict(literal.split("=", 1) for literal in generator.get("literals", ()))
    if generator.get("behavior") == "merge":
        made["ConfigMap", name]["data"] |= data
        return
    assert ("ConfigMap", name) not in made
    metadata = {"name": name, "namespace": generator["namespace"], **generator.get("options", {})}
    made["ConfigMap", name] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _patch(patch: Json, directory: Path, made: Documents) -> None:
    text = (directory / patch["path"]).read_text(encoding="utf-8") if "path" in patch else patch["patch"]
    change = yaml.safe_load(text)
    if isinstance(change, dict):
        target = change["kind"], change["metadata"]["name"]
        made[target] = _merged(made[target], change)
        return
    for operation in change:
        *steps, last = operation["path"].strip("/").split("/")
        place: Any = made[patch["target"]["kind"], patch["target"]["name"]]
        for step in steps:
            place = place[int(step) if isinstance(place, list) else step]
        assert (operation["op"], last) == ("add", "-"), "teach this file the other operations"
        place.append(operation["value"])


def _merged(before: Json, change: Json) -> Json:
    """A strategic merge: tables are merged, null removes, lists with a key by that key."""
    after = dict(before)
    for key, value in change.items():
        if value is None:
            after.pop(key, None)
        elif isinstance(value, dict):
            after[key] = _merged(before.get(key, {}), value)
        elif key in MERGED_BY:
            after[key] = _merged_list(before.get(key, []), value, MERGED_BY[key])
        else:
            after[key] = value
    return after


def _merged_list(before: list[Json], changes: list[Json], key: str) -> list[Json]:
    after = {item[key]: item for item in before}
    for change in changes:
        after[change[key]] = _merged(after.get(change[key], {}), change)
    return list(after.values())


def _name_image(image: Json, made: Documents) -> None:
    for document in made.values():
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
            name, _, tag = container["image"].rpartition(":")
            if name == image["name"]:
                container["image"] = f"{image.get('newName', name)}:{image.get('newTag', tag)}"


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
