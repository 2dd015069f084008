"""The names of the formats for whole sweeps. They stand alone, because an option of a command needs only them."""

from enum import StrEnum


class ExportFormat(StrEnum):
    """The names of the formats."""

    JSON = "json"
    CSV = "csv"
    NCCL_TESTS = "nccl-tests"
    MATRIX = "matrix"
