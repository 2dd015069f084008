"""Runs `muster demo` and records what it prints as docs/demo.svg, the picture in the README."""

import io
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parent / "demo.svg"
WIDTH = 140


def record(text: str) -> str:
    """A terminal that shows `text`, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    shown = Text(f"$ muster demo\n{text}")
    shown.highlight_words(["FAILED", "FAIL"], "bold red")
    shown.highlight_words(["PASS", "HEALTHY"], "green")
    shown.highlight_words(["SIMULATED", "(simulated)"], "yellow")
    console.print(shown)
    return console.export_svg(title="muster demo")


if __name__ == "__main__":
    demo = subprocess.run([sys.executable, "-m", "muster", "demo"], stdout=subprocess.PIPE, text=True, check=True)
    PICTURE.write_text(record(demo.stdout), encoding="utf-8")
