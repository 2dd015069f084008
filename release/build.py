"""Writes the files of a release into a directory: `python -m release.build DIRECTORY`, or `make release`.

Everything is made from the last commit, and two runs give the same bytes. It writes nothing as long as the repository
names different versions.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from release.agreement import changes, disagreements
from release.sbom import bill_of_materials

PACKAGE = "gpu-muster"
EXTRAS = ("agent", "artifacts", "coordinator", "kubernetes", "postgres")
"""What the bill of materials covers. torch and CUDA come with the image's base or from its own index."""

NAMES_VERSIONS = ("docker", "daemonset", "docs")
IMAGE_CONTEXT = (
    *("agent", "coordinator", "core", "daemonset", "docker", "docs/examples", "docs/man"),
    *("plugins", "release", "systemd"),
    *("LICENSE", "README.md", "constraints.txt", "pyproject.toml", ".dockerignore"),
)


def main(target: Path, root: Path) -> list[str]:
    """Writes the release of the repository at `root`; what is wrong instead, if anything is."""
    if changed := git(root, "status", "--porcelain").decode():
        return [f"there are changes that are not committed; commit or stash them:\n{changed.rstrip()}"]
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch)
        archive = git(root, "archive", "--format=tar", "HEAD")
        subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
        version = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        section, wrong = changes(version, (source / "CHANGELOG.md").read_text(encoding="utf-8"))
        wrong += disagreements(version, texts(source))
        if not wrong:
            shutil.rmtree(target, ignore_errors=True)
            write(target, root, source, version, section)
    return wrong


def write(target: Path, root: Path, source: Path, version: str, section: str) -> None:
    """Writes packages, image context, bill of materials, release notes and checksums."""
    target.mkdir(parents=True)
    epoch = git(root, "show", "--no-patch", "--format=%ct", "HEAD").decode().strip()
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(target.resolve())]
    subprocess.run(build, cwd=source, env=os.environ | {"SOURCE_DATE_EPOCH": epoch}, check=True)
    context = git(root, "archive", "--format=tar", "HEAD", *IMAGE_CONTEXT)
    files = {
        f"muster-{version}-images.tar.gz": gzip.compress(context, mtime=0),
        f"muster-{version}.cdx.json": bill_of_materials(needed(PACKAGE, EXTRAS)).encode(),
        f"muster-{version}-changes.md": section.encode(),
    }
    for name, content in files.items():
        (target / name).write_bytes(content)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(target.iterdir())]
    (target / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def needed(name: str, extras: tuple[str, ...] = ()) -> list[Distribution]:
    """A package and everything that it requires with these extras, as installed here."""
    found: dict[str, Distribution] = {}
    waiting = [(name, extras)]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        found[name] = package = distribution(name)
        for line in package.requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                following = (canonicalize_name(wanted.name), tuple(sorted(wanted.extras)))
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
    return list(found.values())


def texts(source: Path) -> dict[str, str]:
    """The files that name versions of images, by their path."""
    files = (path for folder in NAMES_VERSIONS for path in sorted((source / folder).rglob("*")) if path.is_file())
    return {
        str(path.relative_to(source)): path.read_text(encoding="utf-8")
        for path in files
        if path.suffix not in (".png", ".svg", ".pyc")
    }


def git(root: Path, *arguments: str) -> bytes:
    """What git prints."""
    return subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True).stdout


if __name__ == "__main__":
    if wrong := main(Path(sys.argv[1]), Path(__file__).parent.parent):
        sys.exit("\n".join(wrong))
