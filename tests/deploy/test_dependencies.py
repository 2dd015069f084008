"""Dependencies: minimum versions without known vulnerabilities, tested pins, and installations that use the pins."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTALLED_BY_GUIDES = ("agent", "artifacts", "coordinator", "kubernetes", "torch")

FIXED_IN = {
    "aiohttp": "3.14.3",  # CVE-2026-69244; requests smuggled through an upgrade to WebSocket: 3.14.2
    "amqtt": "0.11.4",  # GHSA-2hjf-7455-w946: a subscription keeps the broker busy for ever
    "jinja2": "3.1.6",  # CVE-2025-27516: out of the sandbox
    "pillow": "12.3.0",  # CVE-2026-59199 and others: writes beyond the heap
    "torch": "2.8.0",  # CVE-2025-3730; weights that run code: 2.6.0
}
"""By package, the first version without known vulnerabilities."""

DOCUMENTED = [ROOT / "README.md", ROOT / "docker" / "Dockerfile", *sorted((ROOT / "docs").rglob("*.md"))]


def requirements() -> dict[str, list[Requirement]]:
    """The requirements of each extra without other extras; "" for what is always installed."""
    extras = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    asked = {extra: [Requirement(line) for line in lines] for extra, lines in extras.items()}
    return {extra: [one for one in wanted if one.name != PROJECT["name"]] for extra, wanted in asked.items()}


def pins(text: str) -> dict[str, Version]:
    """The version of each package in a file of constraints."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)$", text, re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


EVERY = {canonicalize_name(one.name): one for wanted in requirements().values() for one in wanted}
PINS = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EVERY)
def test_a_pin_fits_the_requirement(name):
    """Otherwise nothing could be installed with the constraints."""
    assert name not in PINS or EVERY[name].specifier.contains(PINS[name])


def test_everything_that_guides_install_is_pinned():
    """With every extra that a guide installs."""
    wanted = [one for extra in ("", *INSTALLED_BY_GUIDES) for one in requirements()[extra]]
    assert [one.name for one in wanted if canonicalize_name(one.name) not in PINS] == []


def test_every_pin_serves_the_oldest_python():
    """Debian 12 has 3.11.2; a package that needs 3.11.5 cannot be installed there with the pins."""
    installed = [each.metadata for each in distributions() if canonicalize_name(each.name) in PINS]
    needs = {about["Name"]: SpecifierSet(about["Requires-Python"]) for about in installed if "Requires-Python" in about}
    assert len(needs) > 50
    assert [name for name, needed in needs.items() if not needed.contains("3.11.2")] == []


@pytest.mark.parametrize(("name", "version"), FIXED_IN.items())
def test_no_minimum_version_has_a_known_vulnerability(name, version):
    """Neither has a pin."""
    (floor,) = (Version(bound.version) for bound in EVERY[name].specifier if bound.operator == ">=")
    assert floor >= Version(version)
    assert PINS.get(name, floor) >= floor


@pytest.mark.parametrize("path", DOCUMENTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_documented_installations_use_the_pins(path):
    """Every command that installs dependencies has `--constraint`."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installing = [line for line in lines if re.search(r"\bpip (install|wheel)\b", line) and "--no-deps" not in line]
    assert [line for line in installing if "--constraint" not in line] == []


def test_guides_say_how_to_install():
    """Otherwise the test above would check nothing."""
    guide = (ROOT / "docs" / "how-to" / "fleet.md").read_text(encoding="utf-8")
    assert len(re.findall(r"pip (?:install|wheel) .*--constraint ", guide)) == 5


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", directory]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = directory.glob("*.whl")
    return built


def test_the_wheel_carries_the_web_pages(wheel):
    """Templates and files as they are here: pages need nothing else."""
    pages = ROOT / "coordinator" / "muster_coordinator" / "web" / "pages"
    files = [path for name in ("templates", "static") for path in (pages / name).rglob("*") if path.is_file()]
    assert len(files) >= 8
    carried = {path: zipfile.Path(wheel, str(path.relative_to(pages.parent.parent.parent))) for path in files}
    assert [path for path, inside in carried.items() if inside.read_bytes() != path.read_bytes()] == []


def test_the_wheel_carries_the_licences_of_others(wheel):
    """Beside our own, where tools look for them; the programs themselves are among the files of the pages."""
    names = [name for name in zipfile.ZipFile(wheel).namelist() if "dist-info/licenses/" in name]
    assert {name.rpartition("/")[2] for name in names} == {"LICENSE", "uPlot.LICENSE"}
    assert PROJECT["license"] == "Apache-2.0 AND MIT"


def test_the_wheel_carries_the_pins(wheel):
    """For an installation from an index, or from a directory of wheels."""
    carried = zipfile.Path(wheel, "muster/constraints.txt").read_text(encoding="utf-8")
    assert pins(carried) == PINS


def test_the_wheel_installs_the_manual_pages(wheel):
    """Where `man` looks for those of a program in the PATH."""
    names = [name for name in zipfile.ZipFile(wheel).namelist() if "/data/share/man/" in name]
    assert {name.partition("/data/share/man/")[2] for name in names} == {"man1/muster.1", "man5/muster.toml.5"}


def test_the_wheel_carries_what_init_copies(wheel, tmp_path):
    """Units, manifests and scripts: an installation from a wheel writes the same files as a clone."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    for kind, *options in (("slurm", "--host", "h"), ("kubernetes", "--registry", "r")):
        written = []
        for place in (tmp_path / "unpacked", ROOT / "core"):
            directory = tmp_path / f"{kind}-{place.name}"
            command = [sys.executable, "-m", "muster", "init", kind, *options, "--directory", directory]
            # Entry points, and what the unpacked wheel does not have, come from the environment.
            env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])}
            subprocess.run(command, env=env, cwd=tmp_path, check=True, capture_output=True, timeout=60)
            files = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
            written.append({path for path in files if path.parent.name != "issued"})  # named by random numbers
        assert written[0] == written[1]
        assert len(written[0]) > 10


def test_the_audit_reads_the_pins():
    """The command of the weekly job names an existing file."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = re.findall(r"pip-audit --requirement (\S+)", text)
    assert commands
    assert all((ROOT / name).is_file() for name in commands)
