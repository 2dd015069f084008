"""Parses the output of `dcgmi diag -j`, from DCGM 2 to 4: a table of categories, their tests, and a result per device.

DCGM 2 and 3 call the table `DCGM GPU Diagnostic` and name devices as `gpu_id` or `gpu_ids`, where 3.1 mixes lists in a
text with single numbers; DCGM 4 calls it `DCGM Diagnostic` and names any entity, such as a GPU, a CPU or a switch.
Warnings were a text at first, then a list of texts; since 3.3 they are a list of objects with DCGM's error number and
severity. Since 4.5, a test's summary repeats the warnings of its results. Some versions leave nulls between the tests.
"""

from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from muster.model import Data
from muster_plugins.shared.program_json import json_in

MOST_RESULTS = 1024
"""More than the tests times the devices of any node."""

_MOST_CHARACTERS = 500
_MOST_PROBLEMS = 4


class UnreadableReport(Exception):
    """The output is not a readable report of DCGM."""


def _as_list(value: Any) -> Any:
    """A list, also if DCGM wrote a single value."""
    return [each for each in (value if isinstance(value, list) else [value]) if each]


def _as_warning(value: Any) -> Any:
    return {"warning": value} if isinstance(value, str) else value


class DcgmProblem(Data):
    """A warning of a result. `error_severity` is DCGM's, and None before DCGM 3.3."""

    warning: Annotated[str, AfterValidator(lambda text: text[:_MOST_CHARACTERS])]
    error_id: int | None = None
    error_severity: int | None = None


_Warnings = Annotated[tuple[Annotated[DcgmProblem, BeforeValidator(_as_warning)], ...], BeforeValidator(_as_list)]


class _Result(Data):
    status: str
    gpu_id: int | None = None
    gpu_ids: int | str | None = None
    entity_group: str | None = None
    entity_id: int | None = None
    warnings: _Warnings = ()

    @property
    def entity(self) -> str:
        """The entity in words, for example `GPU 3`, `GPU 0,1` or `CPU 0`; empty for the whole node."""
        if self.entity_group is not None and self.entity_id is not None:
            return f"{self.entity_group} {self.entity_id}"
        named = self.gpu_ids if self.gpu_id is None else self.gpu_id
        return "" if named is None else f"GPU {named}"

    def outcome(self, test: str) -> "DcgmOutcome":
        kind, _, number = self.entity.partition(" ")
        return DcgmOutcome(
            test=test,
            status=self.status.strip().lower(),
            entity=self.entity,
            device=int(number) if kind == "GPU" and number.isdecimal() else None,
            problems=self.warnings[:_MOST_PROBLEMS],
        )


class _Test(Data):
    name: str
    results: tuple[_Result, ...] = ()
    test_summary: _Result | None = None

    def outcomes(self) -> "list[DcgmOutcome]":
        """The results, plus the summary if it says more than they do."""
        reported = {problem for result in self.results for problem in result.warnings}
        results = list(self.results)
        if self.test_summary and not (results and reported.issuperset(self.test_summary.warnings)):
            results.append(self.test_summary)
        return [result.outcome(self.name) for result in results]


class _Category(Data):
    tests: Annotated[tuple[_Test, ...], BeforeValidator(_as_list)] = ()


class _Versions(Data):
    dcgm: str | None = Field(None, validation_alias=AliasChoices("version", "DCGM Version"))
    driver: str | None = Field(None, validation_alias="Driver Version Detected")


class _Diagnostic(_Versions):
    test_categories: Annotated[tuple[_Category, ...], BeforeValidator(_as_list)] = ()
    runtime_error: str | None = None


class _Document(Data):
    diagnostic: _Diagnostic = Field(validation_alias=AliasChoices("DCGM Diagnostic", "DCGM GPU Diagnostic"))
    metadata: _Versions = _Versions()


class DcgmOutcome(Data):
    """The outcome of one test for one entity: `status` in lower case, `entity` in words, `device` for a single GPU.

    DCGM numbers GPUs as NVML did when its host engine was started.
    """

    test: str
    status: str
    entity: str
    device: int | None
    problems: tuple[DcgmProblem, ...]


class DcgmReport(NamedTuple):
    """A whole report. `runtime_error` says why outcomes are missing."""

    outcomes: tuple[DcgmOutcome, ...]
    runtime_error: str | None
    dcgm: str | None
    driver: str | None


def read_report(text: str) -> DcgmReport:
    """The report in the output of dcgmi, which may begin with other lines. Raises Garbage if there is no report."""
    try:
        document = _Document.model_validate(json_in(text))
    except ValueError as error:  # a ValidationError is a ValueError, too
        raise UnreadableReport(str(error).splitlines()[0]) from None
    diagnostic, metadata = document.diagnostic, document.metadata
    outcomes = [
        outcome for category in diagnostic.test_categories for test in category.tests for outcome in test.outcomes()
    ]
    if len(outcomes) > MOST_RESULTS:
        raise UnreadableReport(f"{len(outcomes)} results are more than any node has")
    return DcgmReport(
        outcomes=tuple(outcomes),
        runtime_error=diagnostic.runtime_error,
        dcgm=diagnostic.dcgm or metadata.dcgm,
        driver=diagnostic.driver or metadata.driver,
    )
