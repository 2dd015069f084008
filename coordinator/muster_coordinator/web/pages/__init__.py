"""The web pages: rendered by the coordinator, complete without JavaScript, and with relative links only.

Must not decide what a page shows: `views/pages` does. Start with `page_routes.py`; `templates/` has the HTML, `static/`
the style sheet, the icon and the scripts, which are ES modules.
"""
