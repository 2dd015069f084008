"""The built-in plugins, registered by entry points like anybody else's; they import only core.

A check stands in the module of its name, and what only it needs in neighbours whose names begin with that name.
"""
