"""The Mosquitto versions that tests start, and the shipped settings with paths of this machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCKER = ROOT / "docker"

NEWER = ROOT / ".cache" / "mosquitto" / "mosquitto"
"""What .ci/newer-mosquitto unpacks if the installed Mosquitto is older."""

NEWER_SINCE = (2, 0, 21)
"""The version of Debian 13."""


def installed() -> Path:
    """The installed program."""
    found = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    assert found, "these tests need Mosquitto: apt-get install mosquitto"
    return Path(found)


def version_of(program: Path) -> tuple[int, ...]:
    """The version in its help, for example (2, 0, 11)."""
    text = subprocess.run([program, "-h"], capture_output=True, text=True, timeout=60, check=False).stdout
    return tuple(map(int, re.findall(r"^mosquitto version (\d+)\.(\d+)\.(\d+)", text, re.MULTILINE)[0]))


def write_passwords(path: Path, passwords: Mapping[str, str]) -> None:
    """A password file for these accounts."""
    path.write_text("".join(f"{name}:{password}\n" for name, password in passwords.items()))
    subprocess.run(["mosquitto_passwd", "-U", path], check=True, timeout=60)


def docker_settings(passwords: Path) -> str:
    """docker/mosquitto.conf without its listener, with this password file and the ACL of docker/."""
    text = (DOCKER / "mosquitto.conf").read_text(encoding="utf-8")
    return _replaced(
        text,
        {
            "listener 1883\n": "",
            "/run/secrets/broker_passwords": str(passwords),
            "/mosquitto/config/mosquitto.acl": str(DOCKER / "mosquitto.acl"),
        },
    )


def kubernetes_settings(tls: Path) -> str:
    """The settings of the broker in Kubernetes without its listener; `tls` has the files of its Secret."""
    component = ROOT / "daemonset" / "components" / "broker"
    text = (component / "mosquitto.conf").read_text(encoding="utf-8")
    return _replaced(text, {"listener 8883\n": "", "/mosquitto/tls": str(tls), "/mosquitto/config": str(component)})


def _replaced(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text
