"""The files of a fleet in Kubernetes: a copy of the manifests, an overlay of one's own, and the Secrets."""

import base64
import re

from muster.broker_acl import mosquitto_acl
from muster.setup.answers import SetupAnswers
from muster.setup.programs import run_program
from muster.setup.shipped import shipped, shipped_texts
from muster.version import __version__

MINE = "daemonset/overlays/mine"

_PARTS = ("base", "components", "overlays")

_OVERLAY = """\
# Your overlay: it says what is different in your cluster. docs/how-to/kubernetes.md lists components and settings.
# Change ../observe to ../dry-run, and later to ../enforce, to let muster act.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../observe
images:
  - {{name: registry.example/muster-agent, newName: {registry}/muster-agent, newTag: "{version}"}}
  - {{name: registry.example/muster-coordinator, newName: {registry}/muster-coordinator, newTag: "{version}"}}
"""

_ENVIRONMENT = """\
configMapGenerator:
  - name: muster-environment
    namespace: muster
    behavior: merge
    literals:
"""

_BROKER = """\
  - name: muster-broker
    namespace: muster
    behavior: merge
    files:
      - mosquitto.acl
"""


def manifests(answers: SetupAnswers) -> dict[str, str]:
    """The text of every manifest by its path; they are complete but for the Secrets."""
    files = {
        f"daemonset/{part}/{path}": text
        for part in _PARTS
        for path, text in shipped_texts(f"daemonset/{part}")
        if not path.startswith("mine/")  # an overlay that belongs to the user of a clone
    }
    own_fleet = answers.fleet != "default"
    literals = [f"MUSTER_FLEET={answers.fleet}"] if own_fleet else []
    if answers.expected_gpus is not None:
        literals.append(f"MUSTER_EXPECTED_GPUS={answers.expected_gpus}")
    overlay = _OVERLAY.format(registry=answers.registry, version=__version__)
    if literals:
        overlay += _ENVIRONMENT + "".join(f"      - {literal}\n" for literal in literals)
    if own_fleet:
        overlay += _BROKER
        files[f"{MINE}/mosquitto.acl"] = mosquitto_acl(answers.fleet)
    return files | {f"{MINE}/kustomization.yaml": overlay}


def new_secrets() -> str:
    """The Secrets that the manifests name, as YAML. Raises Unavailable if bash or openssl is missing."""
    return run_program("bash", "-c", shipped("daemonset/secrets").read_text(encoding="utf-8"))


def token_in(secrets: str) -> str:
    """The token of the API in the YAML of `new_secrets`."""
    found = re.search(r"^  name: muster-token$.*?^  token: (\S+)$", secrets, re.MULTILINE | re.DOTALL)
    assert found is not None
    return base64.b64decode(found[1]).decode()
