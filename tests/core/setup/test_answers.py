"""What `muster init` is told: refused with the option, what is wrong with it, and what would be right."""

import pytest
from tests.cases import cases

from muster.errors import SettingsError
from muster.setup.answers import SetupAnswers, answers_from_toml, node_names
from muster.setup.fleet_kind import FleetKind

HOSTS = {"kind": FleetKind.SYSTEMD, "host": "hub.example"}
CLUSTER = {"kind": FleetKind.KUBERNETES, "registry": "registry.internal:5000/gpu"}


@cases(
    ("answers", "words"),
    [
        ({"kind": FleetKind.SYSTEMD}, "--host: missing for systemd; give"),
        ({"kind": FleetKind.KUBERNETES}, "--registry: missing for kubernetes; give"),
        ({"kind": FleetKind.MACHINE, "host": "hub"}, "--host: has no meaning for machine; leave it out"),
        ({**HOSTS, "registry": "r"}, "--registry: has no meaning for systemd"),
        ({**HOSTS, "fleet": "a/b"}, "--fleet: 'a/b' cannot name a fleet; use"),
        ({**HOSTS, "fleet": "+"}, "--fleet: '+'"),
        ({**HOSTS, "host": "a, DNS:b"}, "--host: 'a, DNS:b' is neither the name nor the address"),
        ({**HOSTS, "host": "hub\nlistener 1883"}, "--host: "),
        ({**HOSTS, "host": "hub_1"}, "--host: "),
        ({**HOSTS, "host": "fe80::1%eth0"}, "--host: "),
        ({**HOSTS, "expected_gpus": -1}, "--expect-gpus: no node has -1 GPUs; use 0 to 128"),
        ({**CLUSTER, "registry": 'r"}'}, "--registry: "),
    ],
)
def test_wrong_answers(answers, words):
    """The message names the option."""
    with pytest.raises(SettingsError) as refused:
        SetupAnswers(**answers)
    assert str(refused.value).startswith(words)


@cases("answers", [HOSTS, CLUSTER, {"kind": FleetKind.MACHINE, "expected_gpus": 8}, {**HOSTS, "host": "fd00::1"}])
def test_a_later_call_reads_the_same(answers):
    """What was told comes back from the file."""
    told = SetupAnswers(**answers)
    assert answers_from_toml(told.as_toml(), "answers.toml") == told


@cases("text", ["", "kind = 'cluster'", "kind = 'machine'\nunknown = 1", "kind = "])
def test_a_damaged_file_is_refused(text):
    """With its place: nothing is guessed."""
    with pytest.raises(SettingsError, match=r"^/there: cannot be understood: .*; restore it, or name another"):
        answers_from_toml(text, "/there")


@cases(
    ("text", "words"),
    [
        ("n/1", "--nodes: 'n/1' cannot name a node; use"),
        ("../n", "--nodes: '../n'"),
        ("%u", "--nodes: '%u'"),
        ("-n", "--nodes: '-n'"),
        ("n" * 65, "--nodes: 'nnn"),
        ("n[3-1]", "--nodes: '3-1' in 'n[3-1]' runs backwards"),
        ("n1,coordinator", "--nodes: 'coordinator' is the coordinator's account; give"),
    ],
)
def test_wrong_nodes(text, words):
    """A name must be safe as a topic, a directory and the name of a certificate."""
    with pytest.raises(SettingsError) as refused:
        node_names(FleetKind.SYSTEMD, text)
    assert str(refused.value).startswith(words)


def test_nodes_are_a_list_as_slurm_writes_it():
    """Each name once; none are named where the cluster names them."""
    assert node_names(FleetKind.SLURM, "gpu-[01-02],gpu-02,login.lab") == ["gpu-01", "gpu-02", "login.lab"]
    assert node_names(FleetKind.MACHINE, None) == []
    with pytest.raises(SettingsError, match=r"^--nodes: has no meaning for kubernetes"):
        node_names(FleetKind.KUBERNETES, "n1")
