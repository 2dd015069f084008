"""Why a training could not be done: nothing of it convicts the hardware."""

from muster import Action, Finding, Measurement, Severity
from muster.model import Json
from muster_plugins.shared.metric_judgement import device_index

FINDS = {
    "data_unset": "a data set was asked for, but the settings name no data_dir",
    "data_missing": "the data directory does not hold the data set, or something else in its place",
    "data_damaged": "a file of the data set is truncated, or not in the format in which it was published",
    "decoder_missing": "the data set holds JPEG images and no library that decodes them is installed",
    "does_not_fit": "the network with its batches does not fit into memory",
    "device_failed": "a device answered with an error in the middle of its work, or vanished",
}
"""By the last part of the finding's code, what it means."""


class TrainingProblem(Exception):
    """A training cannot be done as asked; `code` is a key of FINDS, the text says what would be right."""

    def __init__(self, code: str, text: str, device: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.device = device


def problem_facts(*problems: TrainingProblem) -> Json:
    """What `problems_found` reads."""
    return {"problems": [{"code": each.code, "text": str(each), "device": each.device} for each in problems]}


def problems_found(check: str, measurement: Measurement) -> list[Finding]:
    """What kept the whole run, or one device, from being measured."""
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
