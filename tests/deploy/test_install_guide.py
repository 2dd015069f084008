"""What the guide's lines for installing muster on a machine name is there."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "how-to" / "fleet.md").read_text(encoding="utf-8")
LINES = re.findall(r"^```shell\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_what_is_copied_is_there():
    """Each file that goes from the clone to the system."""
    copied = re.findall(r"^(?:cp|install -m 0640 -g muster) (\S+)", LINES[0], re.MULTILINE)
    assert len(copied) == 4
    assert all((ROOT / path).is_file() for path in copied)


def test_what_is_installed_can_be():
    """The extras are those of the package, and the units start what they bring."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    extras = {extra for group in re.findall(r"'\.\[(.*?)\]'", LINES[0]) for extra in group.split(",")}
    assert extras == {"agent", "torch", "coordinator", "kubernetes"}
    assert extras <= known.keys()
    (place,) = set(re.findall(r"(/\S+)/bin/pip", LINES[0]))
    for unit in (ROOT / "systemd").glob("*.service"):
        assert f"ExecStart={place}/bin/muster " in unit.read_text()
