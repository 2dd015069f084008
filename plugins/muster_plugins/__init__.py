"""The built-in plugins, each a package with a module that an entry point registers, like anybody else's.

They import only core. What lies here directly is shared by several of them.
"""
