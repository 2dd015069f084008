"""The images and how Cloud Build makes them."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

DOCKER = Path(__file__).parent.parent.parent / "docker"
GUIDE = (DOCKER.parent / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")
IMAGES = ("agent", "coordinator")
BUILT = (*IMAGES, "acceptance")
"""By Cloud Build; the guide for Kubernetes needs no image for acceptances."""
FROM = re.compile(r"^FROM (\S+) AS (\S+)$", re.MULTILINE)
ARG = re.compile(r"^ARG (\w+)", re.MULTILINE)
SUBSTITUTION = re.compile(r"\$\{(_\w+)\}")


@pytest.fixture(scope="module")
def dockerfile():
    return (DOCKER / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def stages(dockerfile):
    """What each stage does, and the image or stage that it stands on."""
    _, *parts = FROM.split(dockerfile)
    return {name: (base, text) for base, name, text in zip(*[iter(parts)] * 3, strict=True)}


@pytest.fixture(scope="module")
def build():
    return yaml.safe_load((DOCKER / "cloudbuild.yaml").read_text(encoding="utf-8"))


def values(step, option):
    """What `--option=…` of a step's arguments says, each time that it stands there."""
    return [each.partition("=")[2] for each in step["args"] if each.startswith(f"--{option}=")]


def assert_can_be_built(step, stage):
    """Every argument is known to the Dockerfile, and the context is the repository."""
    known = {"BASE", *ARG.findall(stage[1])}
    assert {argument.partition("=")[0] for argument in values(step, "build-arg")} <= known
    assert values(step, "file") == ["docker/Dockerfile"]
    assert step["args"][-1] == "."


def test_hadolint_has_nothing_to_say():
    """Not even a hint."""
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, "--no-color", "--failure-threshold", "style", DOCKER / "Dockerfile"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_every_stage_stands_on_a_base_of_choice(stages, dockerfile):
    """One that brings CUDA and torch keeps them: what is installed beside is for the builder to say."""
    assert {base for base, _text in stages.values()} == {"scratch", "${BASE}", "base", "agent"}
    assert {stages[image][0] for image in IMAGES} == {"base"}
    assert "BASE" in ARG.findall(dockerfile[: dockerfile.index("FROM ")])
    assert "# syntax=" not in dockerfile.splitlines()[0]
    assert "[${EXTRAS}]" in stages["agent"][1]


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_as_nobody_in_particular(stages, image):
    """By number, so that Kubernetes can tell that it is not root."""
    (user,) = re.findall(r"^USER (\d+:\d+)$", stages[image][1], re.MULTILINE)
    assert "0" not in user.split(":")
    assert f"muster:x:{user}:" in stages["base"][1]


@pytest.mark.parametrize("image", BUILT)
def test_cloud_build_builds_and_pushes_each_image(build, stages, image):
    """The target and every argument are known to the Dockerfile."""
    (step,) = [step for step in build["steps"] if values(step, "target") == [image]]
    assert values(step, "tag") == [f"${{_REGISTRY}}/muster-{image}:${{_TAG}}"]
    assert values(step, "tag")[0] in build["images"]
    assert_can_be_built(step, stages["agent" if image == "acceptance" else image])


@pytest.mark.parametrize("image", BUILT)
def test_cloud_build_says_what_is_in_each_image(build, image):
    """A bill of materials, made after the image is in the registry, and a provenance for what the build pushes."""
    steps = {step["id"]: step for step in build["steps"]}
    name = f"${{_REGISTRY}}/muster-{image}:${{_TAG}}"
    assert (steps[f"push-{image}"]["args"], steps[f"push-{image}"]["waitFor"]) == (["push", name], [image])
    assert (values(steps[f"sbom-{image}"], "uri"), steps[f"sbom-{image}"]["waitFor"]) == ([name], [f"push-{image}"])
    assert build["options"]["requestedVerifyOption"] == "VERIFIED"


def test_cloud_build_says_that_nobody_has_run_it():
    """Somebody who reads it must not take it for tried."""
    assert "# Never built there" in (DOCKER / "cloudbuild.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("image", IMAGES)
def test_the_guide_builds_each_image(stages, image):
    """As Cloud Build does, under the name that the guide's overlay takes it by."""
    lines = re.findall(r"^docker (build .*)$", GUIDE.replace("\\\n", ""), re.MULTILINE)
    steps = [{"args": shlex.split(line)} for line in lines]
    (step,) = [step for step in steps if values(step, "target") == [image]]
    name, _, version = values(step, "tag")[0].rpartition(":")
    assert f'newName: {name}, newTag: "{version}"' in GUIDE
    assert_can_be_built(step, stages[image])


def test_every_build_in_the_guides_names_what_there_is(dockerfile, stages):
    """Targets, arguments and directories that take the place of an empty stage."""
    guides = sorted((DOCKER.parent / "docs" / "how-to").glob("*.md"))
    text = "\n".join(guide.read_text(encoding="utf-8") for guide in guides).replace("\\\n", "")
    builds = re.findall(r"^(?:docker|docker buildx|buildah) build .*$", text, re.MULTILINE)
    assert len(builds) == 8
    empty = {name for name, (base, _text) in stages.items() if base == "scratch"}
    for step in ({"args": shlex.split(line)} for line in builds):
        assert set(values(step, "target")) <= stages.keys()
        assert {value.partition("=")[0] for value in values(step, "build-arg")} <= set(ARG.findall(dockerfile))
        assert {value.partition("=")[0] for value in values(step, "build-context")} <= empty


def test_cloud_build_takes_every_substitution_and_no_other(build):
    """It refuses a build that leaves one unused, or that uses one that is not there."""
    used = SUBSTITUTION.findall(yaml.safe_dump({name: build[name] for name in ("steps", "images")}))
    assert set(used) == set(build["substitutions"])


def test_no_secret_is_built_in(dockerfile, build):
    """Neither file takes one, and the folder of the compose file's secrets is left out of the context."""
    assert not {"availableSecrets", "secrets"} & build.keys()
    assert not re.search(r"token|password|secret|ssh", dockerfile + yaml.safe_dump(build), re.IGNORECASE)
    assert "docker/secrets" in (DOCKER.parent / ".dockerignore").read_text(encoding="utf-8").split()
