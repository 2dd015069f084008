"""The JobSets among the examples, read by the models that Kubeflow generates from JobSet's own definition."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from generator.kustomize import documents_in
from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet
from pydantic import ValidationError
from tests.cases import cases

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
OBJECTS = [each for path in EXAMPLES.glob("*/*.yaml") for each in documents_in(path.read_text(encoding="utf-8"))]
JOB_SETS = {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == "JobSet"}


def dropped(written: Any, read: Any, place: str = "") -> Iterator[str]:
    """Where the models have read another value than is written, or none: they pass over unknown fields."""
    if isinstance(written, dict) and isinstance(read, dict):
        for key, value in written.items():
            yield from dropped(value, read.get(key), f"{place}.{key}")
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from dropped(one, other, f"{place}[{number}]")
    elif written != read:
        yield place


def read(job_set: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = JobsetV1alpha2JobSet.from_dict(job_set).to_dict()
    return found


@cases("name", sorted(JOB_SETS))
def test_an_example_is_a_job_set(name):
    """Every field of it, the pods included, is one of the definition, and has a value of its type."""
    assert [*dropped(JOB_SETS[name], read(JOB_SETS[name]))] == []


@cases("name", sorted(JOB_SETS))
def test_a_mistake_is_found(name):
    """A field that nobody knows, and a number that is a text: else the test above would show nothing."""
    job_set = JOB_SETS[name]
    job = {**job_set["spec"]["replicatedJobs"][0], "replica": 2}
    wrong = {**job_set, "spec": {**job_set["spec"], "replicatedJobs": [job]}}
    assert ".spec.replicatedJobs[0].replica" in {*dropped(wrong, read(wrong))}
    job["replicas"] = "two"
    with pytest.raises(ValidationError, match="replicas"):
        read(wrong)
