"""The agent's image under Apptainer, as a user without privileges starts it on a node of a cluster.

Apptainer is in Debian's unstable release only, so it runs in a chroot, which is kept in .cache/images.
"""

import json
import re
import shutil

import pytest
from tests.debian import debootstrap, run
from tests.images.conftest import CACHE
from tests.images.test_images import VERSION

USER = "researcher"
SYSTEM = CACHE / "apptainer"
ENTER = (
    # Apptainer looks for the mount point of its image, which a plain chroot does not have.
    'mount --bind "$1" "$1"; for place in proc sys dev; do mount --rbind "/$place" "$1/$place"; done; '
    'cd "$1"; shift; pivot_root . mnt; cd /; umount --lazy mnt; exec "$@"'
)


def as_user(script: str) -> str:
    """What a script prints that the user runs at home."""
    enter = ("unshare", "--mount", "--propagation=private", "sh", "-ec", ENTER, "sh", SYSTEM)
    return run(*enter, "su", "--login", USER, "--command", f"set -e; {script}")


@pytest.fixture(scope="module")
def image_file(store, agent):
    """The image as Apptainer keeps it, in one file: made from what `buildah push` writes."""
    if not SYSTEM.exists():
        new = SYSTEM.with_name("apptainer.new")
        shutil.rmtree(new, ignore_errors=True)
        debootstrap(new, "apptainer", suite="sid")
        shutil.copy("/etc/hosts", new / "etc")  # debootstrap leaves it out, and Apptainer puts it into the container
        run("chroot", new, "useradd", "--create-home", USER)
        new.rename(SYSTEM)
    archive = SYSTEM / "tmp" / "agent.tar"
    archive.unlink(missing_ok=True)
    store.buildah("push", "localhost/agent", f"docker-archive:{archive}:agent")
    as_user("apptainer build --force agent.sif docker-archive:/tmp/agent.tar")
    archive.unlink()
    return "agent.sif"


def test_it_starts(image_file):
    """Its entry point is muster."""
    assert as_user(f"apptainer run {image_file} --version").splitlines()[-1] == VERSION


def test_it_checks_a_node_and_writes_its_report(image_file):
    """Into the current directory, which Apptainer shares; without a GPU, `--nv` does no harm."""
    as_user(f"apptainer run --nv {image_file} check run nvml --report-dir reports")
    (step,) = json.loads((SYSTEM / "home" / USER / "reports" / "report.json").read_text())["steps"]
    assert (step["check"], step["verdict"]) == ("nvml", "SKIPPED")


def test_it_has_the_variables_of_a_job(image_file):
    """Apptainer passes on what Slurm sets, so muster knows its place: here it misses the other process."""
    job = "RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29400"
    said = as_user(f"{job} apptainer run {image_file} check run --suite prolog --join-within-s 1 2>&1 || echo ended $?")
    assert re.search(r"ended 69$", said, re.MULTILINE)
