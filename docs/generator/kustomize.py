"""What the manifests in daemonset/ come to: as much of kustomize as they use, which neither pip nor apt installs."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

_KNOWN = {"apiVersion", "kind", "resources", "components", "configMapGenerator", "patches", "images"}
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


def build(kustomization: Json, directory: Path, documents: Documents | None = None) -> Documents:
    """What `kubectl kustomize` prints for a kustomization in `directory`, without the hashes in names of ConfigMaps.

    A component changes `documents`, those that there are when it is its turn. Raises AssertionError
    for what it does not know.
    """
    assert kustomization.keys() <= _KNOWN, "teach this file what kustomize makes of the rest"
    made = deepcopy(documents or {})
    for name in kustomization.get("resources", ()):
        made |= _resource((directory / name).resolve())
    for name in kustomization.get("components", ()):
        component = (directory / name).resolve()
        made = build(read(component), component, made)
    for generator in kustomization.get("configMapGenerator", ()):
        _generate(generator, directory, made)
    for patch in kustomization.get("patches", ()):
        _patch(patch, directory, made)
    for image in kustomization.get("images", ()):
        _name_image(image, made)
    return made


def documents_in(text: str) -> Iterator[Any]:
    """What a text of YAML has. Parsed by libyaml: the parser in Python takes ten times as long."""
    return yaml.load_all(text, yaml.CSafeLoader)


def read(directory: Path) -> Json:
    """The kustomization of a directory."""
    content: Json
    (content,) = documents_in((directory / "kustomization.yaml").read_text(encoding="utf-8"))
    return content


def _resource(path: Path) -> Documents:
    if path.is_dir():
        return build(read(path), path)
    documents = documents_in(path.read_text(encoding="utf-8"))
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
    (change,) = documents_in(text)
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
