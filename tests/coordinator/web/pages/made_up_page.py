"""A page in the browser that has only some scripts of the coordinator, for tests that make up the rest."""

from contextlib import asynccontextmanager

from muster_coordinator.web.pages.static_files import static_files


@asynccontextmanager
async def made_up_page(browser, *scripts):
    """An empty page, which finds these files in /static/."""
    bodies = {f"/static/{file.name}": file.body for file in static_files() if file.name in scripts}

    async def answer(route):
        path = route.request.url.removeprefix("http://muster.test").partition("?")[0]
        kind = "text/javascript" if path in bodies else "text/html"
        await route.fulfill(body=bodies.get(path, b""), content_type=kind)

    page = await browser.new_page()
    await page.route("**/*", answer)
    await page.goto("http://muster.test/")
    yield page
    await page.close()
