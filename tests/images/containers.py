"""Containers as Kubernetes starts them: user 64200, no capabilities, a root that cannot be written."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.debian import path
from tests.images.conftest import Image
from tests.waiting import wait_for

USER = 64200
CRUN = (
    # crun refuses the two hierarchies of cgroups that some machines have side by side. Its own mount namespace has one.
    "umount --recursive --lazy /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; "
    'exec crun --root "$1/state" --cgroup-manager=disabled run --bundle "$1" "$2"'
)


@contextlib.contextmanager
def container(
    image: Image, directory: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A running container of an image, which ends with the context.

    `directory` is its volume's parent, and holds what it prints in `log`. It has the network of this machine.
    """
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    os.chown(data, USER, USER)
    bundle = _bundle(image, data, arguments or tuple(image.config["Cmd"]), environment or {})
    (directory / "config.json").write_text(json.dumps(bundle))
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", "sh", "-c", CRUN, "sh", directory, directory.name],
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PATH": path()},
        )
        try:
            yield process
        finally:
            wait_for(lambda: _stopped(process), f"the end of the container {directory.name}")


def _stopped(process: subprocess.Popen[str]) -> bool:
    """Whether it has ended. The first process of a container ignores SIGTERM until it has a handler for it."""
    if process.poll() is None:
        process.terminate()
    return process.poll() is not None


def _bundle(image: Image, data: Path, arguments: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, Any]:
    variables = {**dict(line.split("=", 1) for line in image.config["Env"]), **environment}
    uid, gid = map(int, image.config["User"].split(":"))
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": uid, "gid": gid},
            "args": [*image.config["Entrypoint"], *arguments],
            "env": [f"{name}={value}" for name, value in variables.items()],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {},
        },
        "root": {"path": str(image.files), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]},
            {"destination": "/var/lib/muster", "type": "bind", "source": str(data), "options": ["bind", "rw"]},
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
    }
