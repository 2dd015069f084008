"""A visit of a page in a browser."""


class Visit:
    """A page in the browser, and what went wrong on it. `foreign` are requests to other origins."""

    def __init__(self, page, url):
        self.page, self.url = page, url
        self.wrong: list[str] = []
        self.foreign: list[str] = []
        page.on("console", lambda message: self.wrong.append(message.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self._note_request)

    def _note_request(self, request):
        if not request.url.startswith(self.url):
            self.foreign.append(request.url)

    async def open(self, path):
        response = await self.page.goto(self.url + path)
        # Chromium logs the status of the page itself, which is no error of the page.
        self.wrong = [text for text in self.wrong if f"status of {response.status}" not in text]
        return response
