"""`muster preflight`: before a job starts, finds the nodes of the job on which it may start.

The help needs none of the imports inside the function.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.commands.connection import TokenFileOption, UrlOption, connect_by
from muster.commands.options import JsonOption, load_settings, options_of
from muster.commands.verdict_exit import FailOn
from muster.extras import require_extras
from muster_agent.commands.report_options import (
    ExpectGpusOption,
    JoinWithinOption,
    ReportDirOption,
    ReportNameOption,
    SendOption,
    StoreOption,
    VerboseOption,
)

if TYPE_CHECKING:
    from muster.config import Settings


EnvFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write rank, size and first address here if the job starts here.")
]

NodesFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Rank 0 writes the nodes on which the job starts, one a line.")
]


class ExitFor(StrEnum):
    """Whose result the exit code is."""

    NODE = "node"
    JOB = "job"


@options_of(load_settings)
def preflight(
    settings: "Settings",
    *,
    need: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of nodes that the job needs; default: all.")
    ] = None,
    suite: Annotated[str, typer.Option(metavar="NAME", help="Suite to run; its group checks run in pairs, too.")] = (
        "preflight"
    ),
    env_file: EnvFileOption = None,
    nodes_file: NodesFileOption = None,
    exit_for: Annotated[
        ExitFor, typer.Option(help="job: exit with 0 on every node if the job can start on enough of them.")
    ] = ExitFor.NODE,
    expect_gpus: ExpectGpusOption = None,
    report_dir: ReportDirOption = None,
    report_name: ReportNameOption = "preflight",
    send: SendOption = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    store: StoreOption = False,
    verbose: VerboseOption = False,
    join_within_s: JoinWithinOption = 120.0,
    as_json: JsonOption = False,
) -> None:
    """Check the nodes of a job before it starts, and choose those that it runs on.

    Start it on all nodes of the job (torchrun, srun, RANK and WORLD_SIZE).
    Exit codes: 0 the job runs here, 2 this node failed, 3 this node could not be judged, 4 this node is a spare.
    With 5, this node passed, and the job cannot start. With --exit-for job, 0 on all nodes if the job can start.
    """
    require_extras("preflight", "agent")
    if expect_gpus is not None:
        settings = settings.model_copy(update={"expected_gpus": expect_gpus})
    from muster_agent.commands.check_run import RunOptions  # noqa: PLC0415 (see above)
    from muster_agent.commands.preflight_run import (  # noqa: PLC0415 (see above)
        GangFiles,
        PreflightOptions,
        run_preflight,
    )

    client = connect_by(settings, url, token_file) if send else None
    reporting = RunOptions(report_dir, report_name, client, store, verbose, False, join_within_s, FailOn.WARN, as_json)
    options = PreflightOptions(suite, need, GangFiles(env_file, nodes_file), exit_for)
    raise typer.Exit(run_preflight(options, reporting, settings))
