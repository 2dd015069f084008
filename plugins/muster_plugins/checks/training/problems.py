"""Reasons why a training could not run. They do not convict the hardware."""

from muster import Action, Finding, Measurement, Severity
from muster.model import Json
from muster_plugins.shared.metric_judgement import device_index

FINDS = {
    "data_unset": "a data set was requested, but the settings name no data_dir",
    "data_missing": "the data directory does not contain the data set, or contains something else in its place",
    "data_damaged": "a file of the data set is truncated, or not in the format in which it was published",
    "decoder_missing": "the data set consists of JPEG images, and no library that decodes them is installed",
    "does_not_fit": "the network with its batches does not fit into memory",
    "device_failed": "a device returned an error during its work, or vanished",
}
"""What each finding means, by the last part of its code."""


class TrainingProblem(Exception):
    """A training cannot run as requested; `code` is a key of FINDS, and the text says what to change."""

    def __init__(self, code: str, text: str, device: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.device = device


def problem_facts(*problems: TrainingProblem) -> Json:
    """The facts that `problems_found` reads."""
    return {"problems": [{"code": each.code, "text": str(each), "device": each.device} for each in problems]}


def problems_found(check: str, measurement: Measurement) -> list[Finding]:
    """Findings about problems that kept the whole run, or one device, from being measured."""
    problems = measurement.facts.get("problems")
    return [
        Finding(
            code=f"{check}.{problem['code']}",
            summary=str(problem["text"]),
            severity=Severity.UNKNOWN,
            device=device_index(problem["device"]),
            action=Action.INSPECT_HARDWARE if problem["code"] == "device_failed" else Action.CHECK_APPLICATION,
        )
        for problem in (problems if isinstance(problems, list) else ())
        if isinstance(problem, dict)
    ]
