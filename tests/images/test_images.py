"""The images hold what they need, nothing else, and the same bytes when they are built again."""

import json
import re
import time
import tomllib

import pytest
from tests.debian import ROOT
from tests.images.conftest import EXTRAS, REVISION
from tests.images.containers import container

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
SBOM = "usr/share/muster/muster.cdx.json"
PACKAGES = re.compile(r"usr/local/lib/python3\.\d+/dist-packages/.+")
ADDED = re.compile(
    rf"{PACKAGES.pattern}|usr/local/bin/[\w-]+|usr/include/python3\.\d+(/greenlet(/greenlet\.h)?)?"
    rf"|usr/local/share/man/man\d(/muster[\w.]*)?|usr/share/muster|{re.escape(SBOM)}|var/lib/muster|etc/hosts"
)
"""What an image may have beside its base. greenlet brings a header; buildah makes /etc/hosts."""

COMPILERS = re.compile(r"(usr/)?(local/)?bin/(\w+-)*(gcc|cc|c\+\+|g\+\+|clang|ld|as|make|cargo|nvcc)(-[\d.]+)?")
LARGEST_MB = {"coordinator": 250, "agent": 180}
"""What an image may add to its base; measured: 188 and 136."""


def test_two_builds_of_one_commit_are_equal(store, image, wheels):
    """In every byte of every layer, of the labels and of the settings."""
    again = store.build(image.name, f"{image.name}-again", wheels)
    assert again.identity == image.identity


def test_labels_say_what_it_is(image):
    """The version of the package, the commit, the licence."""
    labels = {name.rpartition(".")[2]: value for name, value in image.config["Labels"].items()}
    assert (labels["title"], labels["version"], labels["revision"]) == ("muster", VERSION, REVISION)
    assert labels["licenses"] == "Apache-2.0 AND MIT"


def test_it_runs_as_a_user_of_its_own(image):
    """User and group are the same numbers in every build, and own the data and nothing else."""
    assert image.config["User"] == "64200:64200"
    data = (image.files / "var/lib/muster").stat()
    assert (data.st_uid, data.st_gid) == (64200, 64200)
    owned = [each for each in image.files.rglob("*") if 64200 in (each.lstat().st_uid, each.lstat().st_gid)]
    assert owned == [image.files / "var/lib/muster"]
    assert "muster:x:64200:\n" in (image.files / "etc/group").read_text()


def test_nothing_is_left_behind(image, bare):
    """No wheels, constraints, caches, skeleton files or temporary files; nothing of the base is removed."""
    assert sorted(path for path in image.paths - bare.paths if not ADDED.fullmatch(path)) == []
    assert bare.paths - image.paths == set()
    assert [path for path in image.paths if path.endswith(".whl") or "pip/cache" in path] == []


def test_there_is_no_compiler(image):
    """Whoever breaks in builds nothing here."""
    assert [path for path in image.paths if COMPILERS.fullmatch(path)] == []


def test_the_bill_of_materials_lists_what_is_installed(image):
    """Each package with its version, at the pins."""
    components = json.loads((image.files / SBOM).read_text())["components"]
    listed = {(each["name"], each["version"]) for each in components}
    found = {
        (re.sub(r"[-_.]+", "-", name).lower(), version)
        for about in image.files.glob("usr/**/*.dist-info/METADATA")
        for name, version in re.findall(r"\A(?:.*\n)*?Name: (\S+)\nVersion: (\S+)", about.read_text(errors="replace"))
    }
    assert found <= listed
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    pinned = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    of_the_base = {"pip", "setuptools", "wheel"}
    assert ("gpu-muster", VERSION) in listed
    assert [each for each in listed if each[0] not in of_the_base and pinned.get(each[0], VERSION) != each[1]] == []


def test_it_is_small(image, bare):
    """What the image adds to its base."""
    added = image.size_mb - bare.size_mb
    print(f"{image.name}: {added:.0f} MB beside a base of {bare.size_mb:.0f} MB")
    assert 20 < added < LARGEST_MB[image.name]


def test_it_starts(image, tmp_path):
    """As user 64200, without capabilities, with a root that cannot be written."""
    began = time.monotonic()
    with container(image, tmp_path / "version", "--version") as process:
        assert process.wait(timeout=60) == 0
    print(f"{image.name} --version: {time.monotonic() - began:.2f} s")
    assert (tmp_path / "version" / "log").read_text().splitlines()[-1] == VERSION


@pytest.mark.parametrize("name", sorted(EXTRAS))
def test_every_plugin_of_the_image_loads(request, name, tmp_path):
    """Nothing that an image's extras should bring is missing."""
    image = request.getfixturevalue(name)
    with container(image, tmp_path / "plugins", "plugin", "list") as process:
        assert process.wait(timeout=60) == 0
