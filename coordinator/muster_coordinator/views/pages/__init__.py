"""What the web pages show, made from the state of the fleet: which nodes, causes and sentences, in which order. Pure.

Must not know HTML: `web/pages` has the templates. Start with `fleet_page.py` (the page `/`), `node_page.py` or
`node_table.py`.
"""
