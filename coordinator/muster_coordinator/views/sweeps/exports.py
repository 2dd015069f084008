"""The formats in which a whole sweep can be exported."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.model import Topology
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.export_format import ExportFormat
from muster_coordinator.views.sweeps.matrix.picture import matrix_picture
from muster_coordinator.views.sweeps.nccl_tests_text import nccl_tests_text
from muster_coordinator.views.sweeps.rank_table import rank_table

Positions = Mapping[str, Topology]


@dataclass(frozen=True, slots=True)
class ExportForm:
    """A format: content type, suffix of files, and the function that makes it from a complete record and positions."""

    content_type: str
    suffix: str
    made: Callable[[SweepRecord, Positions], str]


FORMS: Mapping[ExportFormat, ExportForm] = {
    ExportFormat.JSON: ExportForm(
        "application/json", "json", lambda record, _: record.model_dump_json(indent=2) + "\n"
    ),
    ExportFormat.CSV: ExportForm("text/csv", "csv", lambda record, _: rank_table(record)),
    ExportFormat.NCCL_TESTS: ExportForm("text/plain", "txt", lambda record, _: nccl_tests_text(record)),
    ExportFormat.MATRIX: ExportForm("image/svg+xml", "svg", matrix_picture),
}
