"""docker/accounts creates accounts for names that are safe at the broker, and for no others."""

import shutil
import subprocess

import pytest
from tests.brokers import DOCKER


@pytest.fixture
def accounts(tmp_path):
    """Runs a copy of the script, `accounts("n1")`; it writes into `secrets` next to it."""
    script = tmp_path / "accounts"
    shutil.copy(DOCKER / "accounts", script)

    def run(*names: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([script, *names], capture_output=True, text=True, timeout=60, check=False)

    return run


def test_nodes_and_the_coordinator_get_accounts(accounts, tmp_path):
    """Each with a password of its own."""
    done = accounts("node-1", "gpu2.rack3_a", "N" * 246)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "secrets" / "broker_passwords").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["coordinator", "node-1", "gpu2.rack3_a", "N" * 246]
    passwords = {path.read_text() for path in (tmp_path / "secrets").glob("*.password")}
    assert len(passwords) == 4


@pytest.mark.parametrize("name", ["+", "#", "a/b", "n+", "", "../n1", "%u x", "-n", "n1:x", "n1\nn2", "é", "N" * 247])
def test_odd_names_are_refused(accounts, tmp_path, name):
    """Before anything is written; the error says what would be right."""
    done = accounts("node-1", name)
    assert done.returncode == 64
    assert "use letters, digits and ._-" in done.stderr
    assert not (tmp_path / "secrets").exists()


def test_no_node_gets_the_coordinator_s_account(accounts, tmp_path):
    """Its password is for the coordinator alone."""
    done = accounts("coordinator")
    assert done.returncode == 64
    assert "give the node another name" in done.stderr
    assert not (tmp_path / "secrets").exists()
