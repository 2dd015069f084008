"""`make release`: the same files each time, and none while the repository names different versions."""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from release.agreement import changes, disagreements
from release.build import main, texts
from tests.cases import cases

ROOT = Path(__file__).parent.parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
NOT_COMMITTED = shutil.ignore_patterns(
    ".git", ".venv", ".*cache", "__pycache__", "*.egg-info", "build", "dist", "secrets", "node_modules"
)


@pytest.fixture(scope="module")
def repository(live, tmp_path_factory):
    """A repository with this checkout as its only commit, and a date in its changelog."""
    root = tmp_path_factory.mktemp("clone") / "muster"
    shutil.copytree(ROOT, root, ignore=NOT_COMMITTED)
    changelog = root / "CHANGELOG.md"
    heading = re.compile(rf"^## {re.escape(VERSION)}, .+$", re.MULTILINE)
    changelog.write_text(heading.sub(f"## {VERSION}, 2026-12-01", changelog.read_text()))
    git(root, "init", "--quiet")
    commit(root, "Everything")
    return root


def git(root, *arguments):
    subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True)


def commit(root, message):
    git(root, "add", "--all")
    author = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
    git(root, *author, "commit", "--quiet", "--no-gpg-sign", "--message", message)


@pytest.fixture(scope="module")
def released(repository, tmp_path_factory):
    """The directory of a release."""
    directory = tmp_path_factory.mktemp("released") / "dist"
    assert main(directory, repository) == []
    return directory


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_it_has_every_file(released):
    """Packages, image context, bill of materials, changes, checksums."""
    assert {path.name for path in released.iterdir()} == {
        f"gpu_muster-{VERSION}-py3-none-any.whl",
        f"gpu_muster-{VERSION}.tar.gz",
        f"muster-{VERSION}-images.tar.gz",
        f"muster-{VERSION}.cdx.json",
        f"muster-{VERSION}-changes.md",
        "SHA256SUMS",
    }


def test_two_runs_are_equal(released, repository, tmp_path):
    """In every byte, although the second one runs later and elsewhere."""
    assert main(tmp_path / "again", repository) == []
    assert contents(tmp_path / "again") == contents(released)


def test_checksums_fit(released):
    """As `sha256sum --check` reads them."""
    listed = dict(reversed(line.split()) for line in (released / "SHA256SUMS").read_text().splitlines())
    files = {name: content for name, content in contents(released).items() if name != "SHA256SUMS"}
    assert listed == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def test_the_image_context_has_what_the_dockerfile_copies(released):
    """`docker build` needs nothing beside it."""
    with tarfile.open(released / f"muster-{VERSION}-images.tar.gz") as archive:
        names = set(archive.getnames())
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    copied = [line.split()[1:-1] for line in dockerfile.splitlines() if re.match(r"COPY (?!--from)", line)]
    assert len(copied) == 10
    assert {name for line in copied for name in line} <= names
    assert {"docker/Dockerfile", ".dockerignore"} <= names


def test_the_bill_of_materials_lists_what_is_installed_in_production(released):
    """With the package itself and without what only tests need."""
    document = json.loads((released / f"muster-{VERSION}.cdx.json").read_text())
    names = {component["name"] for component in document["components"]}
    assert {"gpu-muster", "aiohttp", "yarl", "sqlalchemy", "asyncpg", "nvidia-ml-py", "kubernetes-asyncio"} <= names
    assert not {"pytest", "ruff", "torch"} & names


def test_the_changes_are_those_of_the_version(released):
    """The section without its heading and without the introduction."""
    text = (released / f"muster-{VERSION}-changes.md").read_text()
    assert text.startswith("### ")
    assert "\n## " not in text


def test_the_wheel_has_the_version(released):
    """Its metadata too."""
    wheel = zipfile.ZipFile(released / f"gpu_muster-{VERSION}-py3-none-any.whl")
    assert f"\nVersion: {VERSION}\n" in wheel.read(f"gpu_muster-{VERSION}.dist-info/METADATA").decode()


def test_changes_that_are_not_committed_are_refused(repository, tmp_path):
    """They would be missing in the release, which is made from the commit."""
    (repository / "forgotten.txt").write_text("")
    try:
        (wrong,) = main(tmp_path / "dist", repository)
    finally:
        (repository / "forgotten.txt").unlink()
    assert "commit or stash" in wrong
    assert "forgotten.txt" in wrong
    assert not (tmp_path / "dist").exists()


NAMED = {
    "manifest": "image: registry.example/muster-agent:0.0.9 # a comment",
    "kustomization": '  - {name: registry.example/muster-coordinator, newName: r/muster-coordinator, newTag: "0.0.9"}',
    "build": "docker build --tag=registry.internal/muster-agent:0.0.9 .",
    "cloud build": "#       --substitutions=_REGISTRY=r/muster,_TAG=0.0.9",
    "Dockerfile": "ARG VERSION=0.0.9",
    "chart": "appVersion: 0.0.9",
}


@cases("line", NAMED.values())
def test_another_version_is_named_with_its_place(line):
    """Whatever the kind of the file."""
    assert disagreements(VERSION, {"a/b": f"first\n{line}\n"}) == [
        f"a/b:2: names version 0.0.9, but pyproject.toml says {VERSION}; change one of them"
    ]
    assert disagreements("0.0.9", {"a/b": line}) == []


def test_this_repository_names_one_version():
    """In every manifest, guide and file of docker/."""
    found = texts(ROOT)
    assert disagreements(VERSION, found) == []
    assert len(disagreements("9.9", found)) >= 10


def test_a_version_without_a_date_is_refused():
    """`not yet released` is no date; a version that the changelog does not have has none either."""
    text = "# Changelog\n\n## 0.2.0, not yet released\n\n- two\n\n## 0.1.0, 2026-12-01\n\n- one\n"
    assert changes("0.1.0", text) == ("- one\n", [])
    (undated,) = changes("0.2.0", text)[1]
    assert "write the date" in undated
    (missing,) = changes("0.3.0", text)[1]
    assert "has no section" in missing
