"""The files of a fleet that hold no secret: their paths in the directory, and their text."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any

from muster.broker_acl import mosquitto_acl
from muster.setup.answers import SetupAnswers
from muster.setup.fleet_kind import WITH_A_BROKER, FleetKind
from muster.setup.kubernetes import manifests
from muster.setup.shipped import shipped, shipped_texts
from muster.toml import to_toml

ANSWERS = "answers.toml"

SETTINGS = "muster.toml"

INVENTORY = "ansible/inventory/hosts"

ETC = "/etc/muster"
"""Where settings, certificates and tokens of a service are on its host."""

OPERATOR_TOKEN, READER_TOKEN = "api-token", "read-token"

CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"

BROKER_SETTINGS, REVOKED = "broker/muster.conf", "broker/revoked.crl"

READMES = {
    FleetKind.MACHINE: ("machine.md",),
    FleetKind.SYSTEMD: ("fleet.md",),
    FleetKind.SLURM: ("fleet.md", "slurm.md"),
    FleetKind.KUBERNETES: ("kubernetes.md",),
}
"""The texts of which README.md is made."""

_HEAD = """\
# To {place} on {host}. Every setting: `muster config example`.
# What is wrong: `muster config check --config {place}`. What is missing: `muster doctor {role} --config {place}`.

"""

_ANSIBLE = "ansible/"

_INVENTORY = """\
# `muster init` writes this file at each call. Put variables of your own into group_vars/all.yml and host_vars/NODE.yml
# beside it: docs/how-to/hosts.md.
[muster_coordinator]
{host}

[muster_nodes]
{nodes}"""

_BROKER_HEAD = """\
# To /etc/mosquitto/conf.d/muster.conf on {host}. The other files of this directory belong in /etc/mosquitto/muster.
listener 8883
cafile /etc/mosquitto/muster/ca.crt
certfile /etc/mosquitto/muster/tls.crt
keyfile /etc/mosquitto/muster/tls.key
# Certificates of nodes that have left: `muster init --revoke`. Mosquitto reads it when it starts.
crlfile /etc/mosquitto/muster/revoked.crl
# Who connects shows a certificate of the same authority. Its common name is the account that the ACL knows.
require_certificate true
use_identity_as_username true
acl_file /etc/mosquitto/muster/mosquitto.acl
"""

_LIMITS = "# An account has one connection."
"""How the part of docker/mosquitto.conf begins that every broker needs."""


def plan(answers: SetupAnswers) -> dict[str, str]:
    """The text of every file without a secret, except those of nodes, by its path."""
    files = {ANSWERS: answers.as_toml(), "README.md": _readme(answers)}
    if answers.kind is FleetKind.KUBERNETES:
        return files | manifests(answers)
    files |= dict(_services(with_ansible=answers.kind in WITH_A_BROKER))
    if answers.kind is FleetKind.MACHINE:
        return files | {SETTINGS: _settings("this machine", "agent", _machine(answers))}
    files |= {
        BROKER_SETTINGS: _broker_settings(answers),
        "broker/mosquitto.acl": mosquitto_acl(answers.fleet),
        f"coordinator/{SETTINGS}": _settings(str(answers.host), "coordinator", _coordinator(answers)),
    }
    if answers.kind is FleetKind.SLURM:
        files |= {f"slurm/{path}": text for path, text in shipped_texts("docs/examples/slurm")}
    return files


def inventory(answers: SetupAnswers, nodes: Iterable[str]) -> str:
    """Which hosts the playbooks of Ansible install what on."""
    return _INVENTORY.format(host=answers.host, nodes="".join(f"{node}\n" for node in nodes))


def node_settings(answers: SetupAnswers, node: str) -> str:
    """The settings file of the agent on a node."""
    slurm = {"plugins": {"slurm": {"enabled": True}}} if answers.kind is FleetKind.SLURM else {}
    table = {
        **_common(answers),
        "node": node,
        **_expected(answers),
        "broker": _way_to_broker(answers),
        "log": {"format": "json"},
        **slurm,
    }
    return _settings(node, "agent", table)


def _services(*, with_ansible: bool) -> Iterator[tuple[str, str]]:
    """What starts muster on hosts: units and, for many hosts, playbooks of Ansible in a folder beside them."""
    for path, text in shipped_texts("systemd"):
        if path.startswith(_ANSIBLE):
            if with_ansible:
                yield path, text
        elif path != SETTINGS:
            yield f"systemd/{path}", text


def _readme(answers: SetupAnswers) -> str:
    text = "".join(map(_text, READMES[answers.kind]))
    return Template(text).substitute(fleet=answers.fleet, host=answers.host, registry=answers.registry)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("texts", name).read_text(encoding="utf-8")


def _settings(host: str, role: str, table: Mapping[str, Any]) -> str:
    return _HEAD.format(host=host, role=role, place=f"{ETC}/{SETTINGS}") + to_toml(table) + "\n"


def _common(answers: SetupAnswers) -> dict[str, Any]:
    return {"fleet": answers.fleet, "data_dir": "/var/lib/muster"}


def _expected(answers: SetupAnswers) -> dict[str, Any]:
    return {} if answers.expected_gpus is None else {"expected_gpus": answers.expected_gpus}


def _way_to_broker(answers: SetupAnswers) -> dict[str, str]:
    files = {"ca_file": CA, "cert_file": CERTIFICATE, "key_file": KEY}
    return {"url": broker_url(str(answers.host)), **{key: f"{ETC}/{name}" for key, name in files.items()}}


def broker_url(host: str) -> str:
    """Where nodes find the broker of that host."""
    return f"mqtts://[{host}]:8883" if ":" in host else f"mqtts://{host}:8883"


def _machine(answers: SetupAnswers) -> dict[str, Any]:
    return {**_common(answers), **_expected(answers), "quarantine": {"mode": "observe"}, "log": {"format": "json"}}


def _coordinator(answers: SetupAnswers) -> dict[str, Any]:
    tokens = {"token_file": f"{ETC}/{OPERATOR_TOKEN}", "read_token_file": f"{ETC}/{READER_TOKEN}"}
    slurm = {"plugins": {"slurm": {"actor": {"enabled": True}}}} if answers.kind is FleetKind.SLURM else {}
    return {
        **_common(answers),
        "broker": _way_to_broker(answers),
        "http": {"listen": "127.0.0.1:8787", **tokens},
        "quarantine": {"mode": "observe"},
        "log": {"format": "json"},
        **slurm,
    }


def _broker_settings(answers: SetupAnswers) -> str:
    text = shipped("docker/mosquitto.conf").read_text(encoding="utf-8")
    return _BROKER_HEAD.format(host=answers.host) + text[text.index(_LIMITS) :]
