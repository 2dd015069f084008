"""A tiny reverse proxy that serves another server below a prefix."""

from contextlib import asynccontextmanager

from aiohttp import ClientSession, web

PREFIX = "/any/prefix"
_PASSED_ON = ("Content-Type", "Content-Security-Policy", "Cache-Control", "ETag")


@asynccontextmanager
async def prefix_proxy(url, port):
    """The URL below which everything of `url` is."""
    async with ClientSession() as session:

        async def forward(request):
            target = f"{url}/{request.match_info['rest']}"
            async with session.get(target, params=request.query, headers={"Accept": "text/html"}) as response:
                headers = {name: response.headers[name] for name in _PASSED_ON if name in response.headers}
                passed_on = web.StreamResponse(status=response.status, headers=headers)
                await passed_on.prepare(request)
                async for part in response.content.iter_any():  # a stream of events has no end
                    await passed_on.write(part)
                return passed_on

        app = web.Application()
        app.add_routes([web.get(f"{PREFIX}/{{rest:.*}}", forward)])
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield f"http://127.0.0.1:{port}{PREFIX}"
        finally:
            await runner.cleanup()
