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
from pathlib import Path

from playwright.async_api import Page, ViewportSize, async_playwright

from muster.client import Client

DOCS = Path(__file__).parent
OTHERS = DOCS.parent / "build" / "screenshots"
CHROMIUM = "/usr/bin/chromium"
NODES = 16
SIZE = ViewportSize(width=1280, height=860)


@asynccontextmanager
async def demo() -> AsyncIterator[str]:
    """The address of a demo that has found its culprits. Raises RuntimeError with its output if it has not."""
    command = (sys.executable, "-m", "muster", "demo", "--serve", "--nodes", str(NODES))
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert running.stdout
    said = ""
    async for line in running.stdout:
        said += line.decode()
        if found := re.search(r"the fleet stays up; look at it in a browser: (\S+)/ ", said):
            break
    else:
        raise RuntimeError(said)
    try:
        yield found[1]
    finally:
        running.send_signal(signal.SIGINT)
        await running.wait()


def pages(url: str) -> dict[str, str]:
    """The path of each page, by the file of its picture."""
    client = Client(url)
    (sweep,) = client.get("sweeps")["items"]
    culprit = sweep["failed_nodes"][0]["node"]
    return {
        "pictures/fleet.png": "/",
        "pictures/node.png": f"/nodes/{culprit}",
        "pictures/sweep.png": f"/sweeps/{sweep['id']}",
        "nodes.png": "/nodes",
        "sweeps.png": "/sweeps",
        "quarantine.png": "/quarantine",
        "events.png": "/events",
        "help.png": "/help",
        "login.png": "/login",
    }


async def take(page: Page, url: str, file: str, path: str) -> None:
    """Takes the picture of a page once it follows the fleet."""
    await page.goto(url + path)
    await page.wait_for_timeout(1_000)
    place = DOCS if file.startswith("pictures/") else OTHERS
    (place / file).parent.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=place / file, full_page=place is OTHERS)


async def main() -> None:
    """Takes all pictures."""
    async with demo() as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page(viewport=SIZE)
        for file, path in (await asyncio.to_thread(pages, url)).items():
            await take(page, url, file, path)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
