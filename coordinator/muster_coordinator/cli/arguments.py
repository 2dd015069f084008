"""Arguments that several commands share, so that they look the same everywhere."""

from typing import Annotated

import typer

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.")]
SweepArgument = Annotated[str, typer.Argument(metavar="SWEEP", help="Id of the sweep, or its first characters.")]
MetricArgument = Annotated[str, typer.Argument(metavar="METRIC", help="Name of the metric.")]
