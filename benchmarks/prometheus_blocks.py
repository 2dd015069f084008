"""What a real Prometheus needs for the same numbers: its own tool writes its blocks from them.

The tool `promtool`, from Debian's package `prometheus`, writes the files that the server would have after its last
compaction. They have no facts, no findings and no verdicts.
"""

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from muster.errors import Unavailable
from muster.model import Run


class Series:
    """The samples of each series, in the order of their times."""

    def __init__(self) -> None:
        self._samples: defaultdict[str, list[str]] = defaultdict(list)
        self.count = 0

    def take(self, run: Run) -> None:
        """Takes all numbers of a run: of each metric one, or one of each device."""
        for metric, value in run.metrics.items():
            name = f"{run.check}_{metric}"
            for device, number in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if number is not None:
                    labels = f'node="{run.node}"' if device is None else f'node="{run.node}",device="{device}"'
                    self._samples[f"{name}{{{labels}}}"].append(f"{number} {run.started_at:.3f}")
                    self.count += 1

    def __len__(self) -> int:
        return len(self._samples)

    def lines(self) -> Iterable[str]:
        """All samples as OpenMetrics, which is what the tool reads."""
        for series, samples in sorted(self._samples.items()):
            for sample in samples:
                yield f"{series} {sample}\n"
        yield "# EOF\n"


def block_bytes(series: Series, directory: Path) -> int:
    """The size of the blocks of a day. Raises Unavailable without the tool."""
    if shutil.which("promtool") is None:
        raise Unavailable("this comparison needs promtool: apt-get install prometheus")
    text, blocks = directory / "samples.txt", directory / "blocks"
    with text.open("w", encoding="utf-8") as file:
        file.writelines(series.lines())
    day = ("--max-block-duration", "24h")
    command = ["promtool", "tsdb", "create-blocks-from", *day, "openmetrics", str(text), str(blocks)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return sum(file.stat().st_size for file in blocks.rglob("*") if file.is_file())
