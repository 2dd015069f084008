"""Options of the commands that run checks on this node and report the results."""

from pathlib import Path
from typing import Annotated

import typer

MOST_GPUS = 128
"""`muster.model.MOST_DEVICES`, whose module takes longer to import than the help; a test compares them."""

ExpectGpusOption = Annotated[
    int | None,
    typer.Option(
        "--expect-gpus", min=0, max=MOST_GPUS, metavar="N", help="Number of GPUs that this machine must have."
    ),
]

ReportDirOption = Annotated[
    Path | None,
    typer.Option("--report-dir", metavar="DIR", help="Directory for the reports: JSON, JUnit XML and HTML."),
]

ReportNameOption = Annotated[str, typer.Option("--report-name", metavar="NAME", help="Name of the report files.")]

SendOption = Annotated[bool, typer.Option("--send", help="Send the report to the coordinator.")]

StoreOption = Annotated[
    bool, typer.Option("--store", help="Store the report with plugins such as artifacts, in a bucket.")
]

VerboseOption = Annotated[bool, typer.Option("--verbose", help="Print measurements, too.")]

JoinWithinOption = Annotated[
    float,
    typer.Option("--join-within-s", min=1, max=86_400, help="Seconds to wait for the other processes of the job."),
]
