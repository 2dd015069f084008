"""The templates of the Helm chart in daemonset/chart, made from the manifests for kustomize.

So the two ways to install cannot differ: a test renders the chart with Helm for every pair of components and compares
the result with that of kustomize.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path

from generator.chart_text import BASE, condition, template
from generator.kustomize import Documents, Json, build, read

DAEMONSET = Path(__file__).parents[2] / "daemonset"
MODES = ("dry-run", "enforce")
"""The overlays that are a value `mode` of the chart. `observe` is the chart without them."""

IMAGES = {
    "registry.example/muster-agent": "agent",
    "registry.example/muster-coordinator": "coordinator",
    "eclipse-mosquitto": "broker",
}
"""By image in the manifests, its name in the chart's values."""

VARIABLES = {"muster-environment": "environment", "muster-coordinator-environment": "coordinatorEnvironment"}
"""By ConfigMap, the name of the table in the values that overrides it."""

_LEFT_OUT = ("Namespace", "muster")
"""Helm installs into a namespace that exists: the Secrets must be there before."""

_HEAD = "{{- /* Generated from the manifests for kustomize by `make docs`. */ -}}\n"

_MARK = re.compile(r"checksum of (?P<names>[a-z -]+)")

_NAMESPACE = """\
{{- if ne .Release.Namespace "muster" }}
{{- fail "namespace: certificates and addresses are made for the namespace muster; install with --namespace muster" }}
{{- end }}
"""


def components() -> list[str]:
    """The names of all components, each before those that include it."""
    names = sorted(path.name for path in (DAEMONSET / "components").iterdir())
    return sorted(names, key=lambda name: len(_included(DAEMONSET / "components" / name)))


def value_of(component: str) -> str:
    """The key of a component in the values: `kernelLog` for `kernel-log`, since Helm reads no hyphen."""
    first, *others = component.split("-")
    return first + "".join(word.capitalize() for word in others)


def chart() -> Mapping[str, str]:
    """By the place of each template below daemonset/chart/templates, its text."""
    features = _features()
    versions: dict[str, Documents] = {BASE: build(read(DAEMONSET / "base"), DAEMONSET / "base")}
    versions |= {name: build(change, place, versions[BASE]) for name, (change, place) in features.items()}
    keys = dict.fromkeys(key for documents in versions.values() for key in documents)
    files = {_file(key): _document(key, versions) for key in keys if key != _LEFT_OUT}
    return files | {"_features.tpl": _HEAD + "".join(map(_definition, features)), "namespace.yaml": _HEAD + _NAMESPACE}


def _features() -> dict[str, tuple[Json, Path]]:
    """By feature, what it adds itself, and the directory that this is relative to."""
    places = {name: DAEMONSET / "components" / name for name in components()}
    places |= {mode: DAEMONSET / "overlays" / mode for mode in MODES}
    of_others = {name: {"components", "resources"} if name in MODES else {"components"} for name in places}
    return {
        name: ({key: value for key, value in read(place).items() if key not in of_others[name]}, place)
        for name, place in places.items()
    }


def _included(place: Path) -> list[str]:
    """The components that a component or an overlay includes."""
    return [Path(path).name for path in read(place).get("components", ())]


def _definition(feature: str) -> str:
    """The named template that says whether a feature is on: by itself, or as part of another one."""
    within = [name for name in components() if feature in _included(DAEMONSET / "components" / name)]
    modes = [mode for mode in MODES if feature in (mode, *_included(DAEMONSET / "overlays" / mode))]
    own = [] if feature in MODES else [feature, *within]
    said = [f".Values.components.{value_of(name)}" for name in own]
    said += [f'(eq .Values.mode "{mode}")' for mode in modes]
    return f'{{{{- define "muster.{feature}" }}}}{{{{ if or {" ".join(said)} }}}}on{{{{ end }}}}{{{{ end }}}}\n'


def _file(key: tuple[str, str]) -> str:
    kind, name = key
    return f"{kind.lower()}-{name}.yaml"


def _document(key: tuple[str, str], versions: Mapping[str, Documents]) -> str:
    """The template of one document, with what the values replace in it."""
    found = {feature: _marked(documents[key]) for feature, documents in versions.items() if key in documents}
    name = key[1]
    text = _with_variables(name, found) if name in VARIABLES else template(found)
    for image, value in IMAGES.items():
        text = re.sub(rf"{re.escape(image)}:\S+", f"{{{{ .Values.images.{value} }}}}", text)
    text = _MARK.sub(_checksum, text)
    text = text.replace("muster/v1/default/", "muster/v1/{{ .Values.fleet }}/")
    text = text.replace("MUSTER_FLEET: default", "MUSTER_FLEET: {{ .Values.fleet }}")
    return _HEAD + (text if BASE in found else f"{{{{- if {condition([*found])} }}}}\n{text}{{{{- end }}}}\n")


def _with_variables(name: str, found: Mapping[str, Json]) -> str:
    """A ConfigMap whose variables the values can replace, one by one."""
    variables = template({feature: document["data"] for feature, document in found.items()})
    rest = {feature: {key: document[key] for key in document if key != "data"} for feature, document in found.items()}
    return f"""\
{{{{- define "{name}" }}}}
{variables}{{{{- end }}}}
{template(rest)}data:
{{{{- range $name, $value := mergeOverwrite (include "{name}" . | fromYaml) .Values.{VARIABLES[name]} }}}}
  {{{{ $name }}}}: {{{{ $value | quote }}}}
{{{{- end }}}}
"""


def _marked(document: Json) -> Json:
    """The document; if it starts pods, with a mark for the checksum of the ConfigMaps that they read.

    kustomize puts such a checksum into the names of ConfigMaps, so that a change restarts the pods.
    """
    pods = document.get("spec", {}).get("template", {})
    names = dict.fromkeys(re.findall(r"'(?:configMap|configMapRef)': \{'name': '([^']+)'", str(pods)))
    if not names:
        return document
    marked = deepcopy(document)
    annotations = {"checksum/configuration": f"checksum of {' '.join(names)}"}
    marked["spec"]["template"]["metadata"]["annotations"] = annotations
    return marked


def _checksum(mark: re.Match[str]) -> str:
    files = [f'(include (print .Template.BasePath "/configmap-{name}.yaml") .)' for name in mark["names"].split()]
    return f"{{{{ print {' '.join(files)} | sha256sum }}}}"
