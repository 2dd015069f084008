"""What axe finds on a page in Chromium, in light and dark colours."""

from axe_core_python.base import AXE_SCRIPT

OPTIONS = {
    "light": {"resultTypes": ["violations"]},
    # A scheme changes colours only: no other rule can find anything else than in the light one.
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]},
}


async def violations(page):
    """The rules that the page breaks, each with the scheme and the elements. It is light afterwards."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    found = []
    for scheme in ("dark", "light"):
        await page.emulate_media(color_scheme=scheme)
        broken = (await page.evaluate("options => axe.run(options)", OPTIONS[scheme]))["violations"]
        found += [(scheme, rule["id"], [node["html"] for node in rule["nodes"]]) for rule in broken]
    return found
