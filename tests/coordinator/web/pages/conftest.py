"""The pages of small fleets, over a real socket, and a browser for them."""

import pytest
import pytest_asyncio
from aiohttp import ClientSession, ClientTimeout
from playwright.async_api import async_playwright, expect
from tests.coordinator.web.pages.page_fleet import page_fleet

CHROMIUM = "/usr/bin/chromium-headless-shell"
"""The engine of Chromium without what belongs to its windows, which would take most of the processor time: half a
second for each context, and more for each page.
"""

expect.set_options(timeout=30_000)
"""A page shows within seconds what has changed; on a busy machine browser, coordinator and test wait for a core."""

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


class PageReader:
    """Asks for pages as a browser does. The fleet that they show is `fleet`."""

    def __init__(self, session, fleet):
        self.session, self.fleet = session, fleet

    async def ask(self, path, **headers):
        async with self.session.get(self.fleet.url + path, headers={**BROWSER, **headers}) as response:
            return response, await response.text()

    async def get(self, path):
        response, text = await self.ask(path)
        assert response.status == 200, text
        return text


@pytest.fixture
def access():
    return None


@pytest.fixture
def settings():
    """Settings of the fleet, see `page_fleet`."""
    return {}


@pytest.fixture
async def pages(live, data_dir, access, settings):
    async with (
        page_fleet(data_dir, access=access, **settings) as fleet,
        ClientSession(timeout=ClientTimeout(total=20)) as session,
    ):
        yield PageReader(session, fleet)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(live):
    """One browser for all tests. Root may not use its sandbox."""
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        await running.close()
