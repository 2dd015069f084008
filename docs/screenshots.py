"""Takes a picture of each page in a real browser: `make screenshots`. The fleet is that of `muster demo --serve`.

The devices of the demo are simulated, and the pages say so. The pictures of the README go to docs/pictures, all others
to build/screenshots.
"""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from muster.client import Client

DOCS = Path(__file__).parent
OTHERS = DOCS.parent / "build" / "screenshots"
CHROMIUM = "/usr/bin/chromium"
NODES = 16
WIDTH, HEIGHT = 1280, 900
PHONE_WIDTH = 390

IN_README = {
    "fleet": "/",
    "node": "/nodes/{node}",
    "sweep": "/sweeps/{sweep}",
}
"""The pictures of the README, each with its path: the first window of these pages."""

PICTURES = IN_README | {
    "nodes": "/nodes",
    "sweeps": "/sweeps",
    "quarantine": "/quarantine",
    "events": "/events",
    "acceptances": "/acceptance",
    "acceptance": "/acceptance/{report}",
    "help": "/help",
    "login": "/login",
}
"""The pictures of whole pages: in light and dark colours, and on a phone."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that has found its culprits: its address, and the file with its token."""

    url: str
    token_file: Path


@asynccontextmanager
async def demo() -> AsyncIterator[Demo]:
    """A demo that keeps running. Raises RuntimeError with its output if it has ended."""
    command = (sys.executable, "-m", "muster", "demo", "--serve", "--nodes", str(NODES))
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert running.stdout
    said = ""
    async for line in running.stdout:
        said += line.decode()
        url = re.search(r"the fleet stays up; look at it in a browser: (\S+)/ ", said)
        token = re.search(r"log in with the token in (\S+)", said)
        if url and token:
            break
    else:
        raise RuntimeError(said)
    try:
        yield Demo(url[1], Path(token[1]))
    finally:
        running.send_signal(signal.SIGINT)
        await running.wait()


async def send_report(demo: Demo) -> None:
    """An acceptance of this machine, so that there is one to look at."""
    suite = ("check", "run", "--suite", "prolog", "--alone", "--send")
    where = ("--url", demo.url, "--token-file", str(demo.token_file))
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", "muster", *suite, *where)
    await running.wait()  # its verdict is that of this machine


def places(url: str) -> dict[str, str]:
    """What the parameters of the paths are: a culprit, the sweep that found it, and a report."""
    client = Client(url)
    (sweep,) = client.get("sweeps")["items"]
    (report,) = client.get("acceptance")["items"]
    return {"node": sweep["failed_nodes"][0]["node"], "sweep": sweep["id"], "report": report["id"]}


async def take(browser: Browser, url: str, file: Path, *, whole: bool, width: int = WIDTH, dark: bool = False) -> None:
    """Takes the picture of a page, once it follows the fleet."""
    file.parent.mkdir(parents=True, exist_ok=True)
    page = await browser.new_page(viewport={"width": width, "height": HEIGHT})
    await page.emulate_media(color_scheme="dark" if dark else "light")
    await page.goto(url)
    await page.wait_for_timeout(1_000)
    await page.screenshot(path=file, full_page=whole)
    await page.close()


async def main() -> None:
    """Takes all pictures."""
    async with demo() as running, async_playwright() as playwright:
        await send_report(running)
        values = await asyncio.to_thread(places, running.url)
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, path in IN_README.items():
            await take(browser, running.url + path.format(**values), DOCS / "pictures" / f"{name}.png", whole=False)
        for name, path in PICTURES.items():
            url = running.url + path.format(**values)
            await take(browser, url, OTHERS / f"{name}-light.png", whole=True)
            await take(browser, url, OTHERS / f"{name}-dark.png", whole=True, dark=True)
            await take(browser, url, OTHERS / f"{name}-phone.png", whole=True, width=PHONE_WIDTH)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
