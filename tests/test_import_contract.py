"""The house: who may import whom."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_import_contract():
    """Agent, coordinator and plugins import only core; core imports nobody; decisions import no I/O."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_the_contract_names_every_built_in_plugin():
    """A plugin that is missing from the list may import another one unnoticed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    name = "a built-in plugin knows nothing of the others"
    (listed,) = (contract["modules"] for contract in settings["contracts"] if contract["name"] == name)
    rooms = [ROOT / "plugins/muster_plugins" / room for room in ("checks", "machines", "notifiers", "schedulers")]
    packages = [init.parent for room in rooms for init in room.glob("*/__init__.py")]
    assert sorted(listed) == sorted(f"muster_plugins.{package.parent.name}.{package.name}" for package in packages)
